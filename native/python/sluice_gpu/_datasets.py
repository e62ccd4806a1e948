"""Reads a dataset into the cache of the workspace's node, where its launcher cannot reach the files: on a cluster."""

import json
import os
import re
import threading
import time

from jupyter_server.base.handlers import APIHandler
from tornado.web import HTTPError, authenticated

_PIECE = 1 << 20
_CACHE_PART = 0.5
"""Of the memory that is free for files, so much may one dataset take."""
_PATIENCE_SECONDS = 15.0
"""Whoever wants a dataset read asks every second; a reading that nobody asks about any more ends."""


def free_memory(meminfo="/proc/meminfo", cgroup="/sys/fs/cgroup"):
    """Bytes that can be had without swapping: of the machine, and of what this container may have."""
    with open(meminfo, encoding="ascii") as file:
        available = re.search(r"^MemAvailable:\s+(\d+) kB$", file.read(), re.MULTILINE)
    free = int(available.group(1)) * 1024 if available else 0
    try:
        with open(f"{cgroup}/memory.max", encoding="ascii") as file:
            most = file.read().strip()
        with open(f"{cgroup}/memory.current", encoding="ascii") as file:
            used = int(file.read())
    except (OSError, ValueError):
        return free
    return free if most == "max" else max(0, min(free, int(most) - used))


class Reading:
    """Reads every file below a folder once, in a thread of its own, so that the kernel has it in its cache."""

    def __init__(self, folder, free=free_memory):
        self._folder = folder
        self._free = free
        self._asked_at = time.monotonic()
        self._so = {"state": "reading", "bytes": 0, "totalBytes": None, "lacks": None}
        self._thread = threading.Thread(target=self._run, name="sluice-dataset", daemon=True)
        self._thread.start()

    def told(self):
        """How far it is; whoever asks wants it to go on."""
        self._asked_at = time.monotonic()
        return dict(self._so)

    def gave_up(self):
        """Whether it ended because nobody asked any more."""
        return self._so["state"] == "unwanted"

    def _run(self):
        try:
            total = sum(size for _, size in _files_below(self._folder))
            self._so["totalBytes"] = total
            most = int(self._free() * _CACHE_PART)
            lacks = self._read(most)
        except FileNotFoundError:
            self._end("missing")
            return
        except OSError:
            self._end("failed")
            return
        if lacks == "unwanted":
            self._end(lacks)
        elif self._so["bytes"] < total:
            self._end("partly", lacks or "files")
        else:
            self._end("done")

    def _end(self, state, lacks=None):
        self._so = {**self._so, "state": state, "lacks": lacks}

    def _read(self, most):
        """What ended it before its end: too little memory, or that nobody wants it; None at its end."""
        piece = memoryview(bytearray(_PIECE))
        for path, _ in _files_below(self._folder):
            try:
                # What was a file a moment ago may be a link or a pipe by now.
                file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except OSError:
                continue
            try:
                while length := os.readv(file, [piece]):
                    self._so["bytes"] += length
                    if self._so["bytes"] >= most:
                        return "memory"
                    if time.monotonic() - self._asked_at > _PATIENCE_SECONDS:
                        return "unwanted"
            except OSError:
                continue
            finally:
                os.close(file)
        return None


def _files_below(folder):
    """Paths and sizes of the files; links are not followed, and what cannot be read is left out."""
    waiting = [folder]
    while waiting:
        at = waiting.pop()
        try:
            entries = list(os.scandir(at))
        except OSError:
            if at == folder:
                raise
            continue
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    yield entry.path, entry.stat(follow_symlinks=False).st_size
            except OSError:
                continue


_readings = {}


class DatasetHandler(APIHandler):
    """`POST sluice-gpu/datasets` with `{"folder": …}`: begins to read it where that has not been done, and says how far."""

    @authenticated
    def post(self):
        """Answers at once: `{state, bytes, totalBytes, lacks}`."""
        folder = (self.get_json_body() or {}).get("folder")
        if not isinstance(folder, str) or not os.path.isabs(folder):
            raise HTTPError(400, "The folder must be an absolute path.")
        reading = _readings.get(folder)
        if reading is None or reading.gave_up():
            reading = _readings[folder] = Reading(folder)
        self.set_header("Cache-Control", "no-store")
        self.finish(json.dumps(reading.told()))
