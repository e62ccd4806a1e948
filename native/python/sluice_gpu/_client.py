"""The native client library as Python sees it: one function, JSON in and JSON out."""

import ctypes
import json
import os
import threading

LIBRARY = "libsluice_client.so"

_lock = threading.Lock()
_library = None
_owner = None
_kernel = None


class ClientProblem(Exception):
    """The native client, the broker or the way between them failed; the message is for a person."""

    def __init__(self, message, code="unavailable"):
        super().__init__(message)
        self.code = code


def library_dir():
    """The folder of the native libraries: inside the package, or SLUICE_LIBRARY_DIR when run from source."""
    return os.environ.get("SLUICE_LIBRARY_DIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")


def _load():
    global _library
    with _lock:
        if _library is None:
            path = os.path.join(library_dir(), LIBRARY)
            try:
                library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
                library.sluice_request.argtypes = [ctypes.c_char_p]
                # Not c_char_p: ctypes would copy the text and lose the pointer that has to be freed.
                library.sluice_request.restype = ctypes.c_void_p
                library.sluice_free.argtypes = [ctypes.c_void_p]
                library.sluice_free.restype = None
            except (OSError, AttributeError) as error:
                raise ClientProblem(f"the native client library cannot be loaded: {error}", "internal") from error
            _library = library
        return _library


def request(op, **fields):
    """Ask the native client; None fields are left out. Raises ClientProblem when it answers with an error."""
    library = _load()
    body = json.dumps({"op": op, **{name: value for name, value in fields.items() if value is not None}})
    pointer = library.sluice_request(body.encode())
    if not pointer:
        raise ClientProblem("the native client gave no answer", "internal")
    try:
        answer = json.loads(ctypes.string_at(pointer))
    finally:
        library.sluice_free(pointer)
    error = answer.get("error")
    if error:
        if isinstance(error, dict):
            raise ClientProblem(error.get("message", "unknown error"), error.get("code", "internal"))
        raise ClientProblem(str(error))
    return answer


# ctypes frees what nobody refers to.
_hooks = []


def tell_first_use(tell):
    """`tell(lease_id, text)` hears of a GPU that the first use attaches by itself; "" while one is waited for."""

    @ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p)
    def hook(lease_id, text):
        tell(lease_id.decode(), text.decode())

    _hooks.append(hook)
    _load().sluice_attached_hook(hook)


def start_time(pid="self"):
    """Field 22 of /proc/PID/stat: with the pid it names one process start for good. None when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if fields[0] in (b"Z", b"X"):
        return None
    return int(fields[19])


def own_process():
    """(pid, start time) of this process."""
    return os.getpid(), start_time()


def ensure_owner(kind="process", kernel_id=None, label=None):
    """Make this process the owner of the leases it asks for, once; its children find it by the socket."""
    global _owner, _kernel
    pid, started = own_process()
    if _owner == (pid, started):
        return
    _kernel = kernel_id
    owner = {"kind": kind, "pid": pid, "startTime": started}
    if kernel_id:
        owner["kernelId"] = kernel_id
    if label:
        owner["label"] = label[:200]
    answer = request("init", owner=owner)
    if answer.get("socket"):
        os.environ["SLUICE_OWNER_SOCKET"] = answer["socket"]
    _owner = (pid, started)


def own_kernel():
    """Jupyter's kernel id of this process, or None."""
    return _kernel
