"""What a workspace's programs tell its own server, by files in the runtime folder: that something about their GPU has
changed, and for what they wait. The server looks at the folder several times a second, the broker only now and then.
"""

import json
import os
import stat

from . import _client

# Where a program has left more notes, or a longer one, the server reads no further.
MOST_NOTES = 64
LONGEST_NOTE = 4096

_CHANGED = "changed"
_WAITING = "waiting-"


def _folder():
    return os.environ.get("SLUICE_RUNTIME_DIR", "")


def changed():
    """The server asks the broker at once. Never raises: what is told here is not worth an error."""
    if not _folder():
        return
    try:
        with open(os.path.join(_folder(), _CHANGED), "w", encoding="ascii"):
            pass
    except OSError:
        pass


def waits(answer, kernel_id):
    """This process waits in the queue: `answer` is the broker's. Never raises."""
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
    """This process has left the queue, with a GPU or without. Never raises."""
    if not _folder():
        return
    try:
        os.remove(os.path.join(_folder(), f"{_WAITING}{os.getpid()}"))
    except OSError:
        pass
    changed()


def mark():
    """Another value than before when something has changed."""
    times = []
    for name in ("", _CHANGED):
        try:
            times.append(os.stat(os.path.join(_folder(), name)).st_mtime_ns)
        except OSError:
            times.append(0)
    return tuple(times)


def waiting():
    """What the processes of this workspace wait for: `{position, of, milli, gpuType, kernelId}` of each."""
    try:
        names = sorted(name for name in os.listdir(_folder()) if name.startswith(_WAITING) and "." not in name)
    except OSError:
        return []
    notes = (_read(os.path.join(_folder(), name)) for name in names[:MOST_NOTES])
    # A process that was killed leaves its note behind.
    return [note for note in notes if note is not None and _client.start_time(note["pid"]) == note["startTime"]]


def _read(path):
    """A note, or None where the file is none: any program of the workspace could have written it."""
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
