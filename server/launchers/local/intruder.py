"""Run inside a notebook by a test: tries to reach what is not the workspace's, and prints what it could do."""

import ctypes
import json
import os
import signal
import socket
import subprocess
import time

TARGETS = json.loads("""@TARGETS@""")
got = {}


def attempt(name, action):
    try:
        result = action()
    except BaseException as error:  # noqa: BLE001 - every failure is the wanted outcome
        got[name] = f"no: {type(error).__name__}"
    else:
        got[name] = f"YES: {result!r}"[:200]


def read(path):
    with open(path, "rb") as file:
        return file.read(200)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=5, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise OSError(done.stderr[:100])
    return done.stdout[:100]


for name, path in TARGETS["files"].items():
    attempt(f"read {name}", lambda path=path: read(path))
    attempt(f"read {name} through another root", lambda path=path: read(f"/proc/1/root{path}"))
attempt("list the state directory", lambda: os.listdir(TARGETS["state"]))
attempt("list /root", lambda: os.listdir("/root/.ssh"))
attempt("read /etc/shadow", lambda: read("/etc/shadow"))

environment = "/opt/sluice/environment"
attempt("write into the shared environment", lambda: open(f"{environment}/x", "w"))
attempt("make the shared environment writable", lambda: run("mount", "-o", "remount,bind,rw", environment))
inside = f"mount -o remount,bind,rw {environment} && touch {environment}/x"
attempt("make it writable in a namespace of its own", lambda: run("unshare", "-Urm", "sh", "-c", inside))
# No process maps these pages, so no sum of processes counts them.
memory = "mount -t tmpfs -o size=1g memory /dev/shm && head -c 1000000 /dev/zero >/dev/shm/file"
attempt("mount a file system in memory in a namespace of its own", lambda: run("unshare", "-Urm", "sh", "-c", memory))
attempt("become root in a namespace of its own", lambda: run("unshare", "-Ur", "true"))
attempt("take /proc/sys", lambda: os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
attempt("become root", lambda: os.setuid(0))
attempt("use a set-uid program", lambda: run("su", "-c", "id", "root"))


def device():
    os.mknod("/tmp/sluice-intruder-disk", 0o60600, os.makedev(254, 0))
    os.unlink("/tmp/sluice-intruder-disk")


attempt("make a device", device)
attempt("see the broker's process", lambda: read(f"/proc/{TARGETS['broker']}/cmdline"))
attempt("signal the broker", lambda: os.kill(TARGETS["broker"], signal.SIGCONT))

# Unlike PTRACE_ATTACH this stops nobody where it succeeds.
PTRACE_SEIZE = 0x4206


def trace():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(PTRACE_SEIZE, TARGETS["broker"], None, None) != 0:
        raise OSError(ctypes.get_errno())
    return "traced"


attempt("trace the broker", trace)


def other_server(token=None):
    import http.client

    link = http.client.HTTPConnection("other", timeout=5)
    link.sock = socket.socket(socket.AF_UNIX)
    link.sock.connect(TARGETS["other"])
    link.request("GET", "/api/contents", headers={"Authorization": f"token {token}"} if token else {})
    status = link.getresponse().status
    if status != 200:
        raise PermissionError(status)
    return status


attempt("enter the other workspace without a token", other_server)
attempt("enter the other workspace with the own credential", lambda: other_server(open(TARGETS["credential"]).read()))


def own_server():
    me = json.load(open("/run/sluice/jupyter/runtime/" + next(n for n in os.listdir("/run/sluice/jupyter/runtime") if n.startswith("jpserver") and n.endswith(".json"))))
    return me["token"]


attempt("enter the other workspace with the own server's token", lambda: other_server(own_server()))


def eavesdrop():
    import zmq

    listening = [line.split() for line in open("/proc/net/tcp").readlines()[1:]]
    ports = {int(fields[1].split(":")[1], 16) for fields in listening if fields[3] == "0A"}
    context = zmq.Context()
    subscribed = context.socket(zmq.SUB)
    subscribed.linger = 0
    subscribed.subscribe(b"")
    for port in ports:
        subscribed.connect(f"tcp://127.0.0.1:{port}")
    deadline = time.monotonic() + 4
    try:
        while subscribed.poll(max(0, int((deadline - time.monotonic()) * 1000))):
            if any(TARGETS["spoken"].encode() in part for part in subscribed.recv_multipart()):
                return f"heard on one of {len(ports)} ports"
    finally:
        context.destroy(0)
    raise PermissionError(f"silence on {len(ports)} ports")


attempt("listen to the other workspace's kernel", eavesdrop)


def database():
    # A connection is enough to take one of the server's places, password or not.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(5)
        link.connect(TARGETS["database"])
    return "connected"


attempt("connect to the database", database)



def reached(address, port):
    # The workspace's own forwarder takes connections to other addresses before the egress process judges them.
    with socket.create_connection((address, port), 3) as link:
        link.settimeout(10)
        greeting = link.recv(100)
    if not greeting:
        raise ConnectionError("closed without a word")
    return greeting


# Every address of this machine, on a port where the test listens; some lead through no network at all.
for address in TARGETS["addresses"]:
    attempt(f"connect to the host at {address}", lambda address=address: reached(address, TARGETS["listening"]))


def through_proxy(target):
    with socket.create_connection(("127.0.0.1", 3128), 5) as link:
        link.sendall(f"CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n\r\n".encode())
        answer = link.recv(1000).decode()
    if " 200 " in answer.split("\r\n")[0]:
        return answer
    raise PermissionError(answer)


def control_by_egress():
    try:
        return through_proxy(TARGETS["gpud"]).split("\r\n")[0]
    except OSError as error:
        return repr(error)


CLOSED = [*TARGETS["addresses"], "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254"]
for host in CLOSED:
    port = TARGETS["listening"]
    attempt(f"connect by the egress proxy to {host}", lambda host=host, port=port: through_proxy(f"{host}:{port}"))


def abstract():
    # Names of abstract sockets belong to a network, too.
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(TARGETS["abstract"].replace("@", "\0"))
        return "connected"


attempt("connect to an abstract socket of the host", abstract)
attempt("lay a socket where the broker's is", lambda: socket.socket(socket.AF_UNIX).bind("/run/sluice-network/other"))
attempt("add a network device", lambda: run("ip", "link", "add", "own", "type", "dummy"))



def own_socket(family):
    socket.socket(family, socket.SOCK_STREAM).bind((socket.VMADDR_CID_ANY, 4321))
    return "bound"


attempt("make a socket of the virtual machine's host", lambda: own_socket(socket.AF_VSOCK))


def keyring():
    # KEYCTL_GET_KEYRING_ID of the session keyring, which passes through all namespaces.
    number = {"x86_64": 250, "aarch64": 219}[os.uname().machine]
    libc = ctypes.CDLL(None, use_errno=True)
    found = libc.syscall(number, 0, -3, 0)
    if found < 0:
        raise OSError(ctypes.get_errno())
    return found


attempt("find a session keyring", keyring)
attempt("lift the limit of shared memory", lambda: open("/proc/sys/kernel/shmall", "w").write("99999999"))

secrets = TARGETS["secrets"]
found = []


def search(top):
    for folder, folders, files in os.walk(top):
        for name in files:
            path = os.path.join(folder, name)
            try:
                if os.path.isfile(path) and os.path.getsize(path) < 5_000_000:
                    text = open(path, "rb").read()
                    found.extend(f"{key} in {path}" for key, value in secrets.items() if value.encode() in text)
            except OSError:
                pass


for top in TARGETS["search"]:
    search(top)
pids = [pid for pid in os.listdir("/proc") if pid.isdigit()]
for pid in pids:
    for name in ("environ", "cmdline"):
        try:
            text = open(f"/proc/{pid}/{name}", "rb").read()
            found.extend(f"{key} in /proc/{pid}/{name}" for key, value in secrets.items() if value.encode() in text)
        except OSError:
            pass
variables = [name for name in os.environ if name in TARGETS["variables"]]
ports = [line.split()[1] for line in open("/proc/net/tcp").readlines()[1:] if line.split()[3] == "0A"]
control = {
    # Its own: the egress proxy (0C38) and what its kernel opens.
    "GPU server by the egress proxy": control_by_egress(),
    "egress proxy listens": any(port == "0100007F:0C38" for port in ports),
    "own credential": read(TARGETS["credential"]).decode(),
    "uid": os.getuid(),
    "processes": len(pids),
    "home writable": os.access("/home/user", os.W_OK),
}
print(json.dumps({"got": got, "found": found, "variables": variables, "control": control}))
