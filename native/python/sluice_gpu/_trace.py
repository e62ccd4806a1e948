"""`%gpu trace`: which lines of a cell waited for the GPU server. The client counts; here its calls get their places."""

import ctypes
import linecache
import os
import sys
import sysconfig

from . import _client

# Code below these folders is a library's: the line that matters is the one of the program that called it.
_LIBRARIES = tuple(
    {os.path.join(path, "") for path in (*map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")),)}
    | {os.path.join(os.path.dirname(os.path.abspath(__file__)), "")}
)


class Tracer:
    """Counts one cell after another, from `start` to `stop`. `last` is the client's count of the last cell.

    Without a shell, for programs, a cell is what lies between `cell_begins` and `cell_ends`.
    """

    def __init__(self, shell=None):
        self._shell = shell
        self._sites = {}
        self._hook = None
        self._counting = False
        self.last = None

    def start(self):
        """From the next cell on, cells are counted."""
        if self._hook is None:
            hook = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_char_p, ctypes.c_char_p)(self._site)
            _set_hook(hook)
            # Kept: the client calls it as long as it is set.
            self._hook = hook

    def stop(self):
        """Cells are counted no more; what was counted is forgotten."""
        if self._hook is not None:
            _client.request("trace", on=False)
            _set_hook(None)
        self._hook = self.last = None
        self._counting = False

    def cell_begins(self):
        """Called before each cell of the user's."""
        if self._hook is not None:
            self._sites.clear()
            _client.request("trace", on=True)
            self._counting = True

    def cell_ends(self):
        """Called after each cell."""
        if self._counting:
            self._counting = False
            self.last = _client.request("trace", on=False)

    def _site(self, _function, _operation):
        """The number of the innermost line that is no library's, else of the innermost line."""
        try:
            frame = innermost = sys._getframe(1)
        except ValueError:
            # A thread without Python.
            return 0
        while frame is not None and frame.f_code.co_filename.startswith((*_LIBRARIES, "<frozen")):
            frame = frame.f_back
        frame = frame or innermost
        place = (frame.f_code.co_filename, frame.f_lineno)
        return self._sites.setdefault(place, len(self._sites) + 1)

    def places(self):
        """{site: (where, source line)} of the last cell."""
        return {number: self._describe(*place) for place, number in self._sites.items()}

    def last_with_places(self):
        """The last count with the place of each call, for programs."""
        places = self.places()
        calls = [{**call, "line": ": ".join(places.get(call["site"], ()))} for call in self.last["calls"]]
        return {**self.last, "calls": calls}

    def _describe(self, filename, line):
        named = self._shell.compile.format_code_name(filename) if self._shell else None
        kind, name = named or ("File", os.path.basename(filename))
        where = f"{name} line {line}" if kind == "Cell" else f"{os.path.basename(filename)} line {line}"
        return where, linecache.getline(filename, line).strip()


def _set_hook(hook):
    function = _client._load().sluice_trace_hook
    function.restype = None
    function.argtypes = [ctypes.c_void_p]
    function(None if hook is None else ctypes.cast(hook, ctypes.c_void_p))
