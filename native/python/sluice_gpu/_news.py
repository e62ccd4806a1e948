"""Notes from a workspace's processes to its Jupyter server, as files in the runtime folder: changes of a lease, and
waiting requests. The server checks the folder several times a second, and asks the broker far less often.
"""

import json
import os
import stat

from . import _client

# Limits of the server for notes, which any program of the workspace can write.
MOST_NOTES = 64
LONGEST_NOTE = 4096

_CHANGED = "changed"
_WAITING = "waiting-"


def _folder():
    return os.environ.get("SLUICE_RUNTIME_DIR", "")


def changed():
    """Make the server ask the broker at once. Never raises, because a lost note only delays the display."""
    if not _folder():
        return
    try:
        with open(os.path.join(_folder(), _CHANGED), "w", encoding="ascii"):
            pass
    except OSError:
        pass


def waits(answer, kernel_id):
    """Note that this process waits in the queue; `answer` is the broker's response. Never raises."""
    if not _folder():
        return
    pid, started = _client.own_process()
    place = {name: answer.get(name) for name in ("position", "of", "milli", "gpuType")}
    note = {**place, "pid": pid, "startTime": started, "kernelId": kernel_id}
    path = os.path.join(_folder(), f"{_WAITING}{pid}")
    try:
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            json.dump(note, file)
        os.replace(f"{path}.part", path)
    except OSError:
        pass


def waits_no_more():
    """Remove the note: this process has left the queue, with a GPU or without. Never raises."""
    if not _folder():
        return
    try:
        os.remove(os.path.join(_folder(), f"{_WAITING}{os.getpid()}"))
    except OSError:
        pass
    changed()


def mark():
    """A value that differs after each change."""
    times = []
    for name in ("", _CHANGED):
        try:
            times.append(os.stat(os.path.join(_folder(), name)).st_mtime_ns)
        except OSError:
            times.append(0)
    return tuple(times)


def waiting():
    """The waiting requests of this workspace, each with `{position, of, milli, gpuType, kernelId}`."""
    try:
        names = sorted(name for name in os.listdir(_folder()) if name.startswith(_WAITING) and "." not in name)
    except OSError:
        return []
    notes = (_read(os.path.join(_folder(), name)) for name in names[:MOST_NOTES])
    # A process that was killed leaves its note behind.
    return [note for note in notes if note is not None and _client.start_time(note["pid"]) == note["startTime"]]


def _read(path):
    """A note, or None for an invalid file: any program of the workspace could have written it."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            note = json.loads(file.read(LONGEST_NOTE))
    except (OSError, ValueError):
        return None
    numbers = ("pid", "startTime", "position", "of", "milli")
    known = isinstance(note, dict) and all(type(note.get(name)) is int for name in numbers)
    return note if known and isinstance(note.get("gpuType"), str) else None
