"""Bind-mount a folder whose path must hold no link.

usage: bind-folder.py SOURCE TARGET

The path was checked before. Another workspace that can write above the folder may have put a link in its place since
then. So each part of the path is opened without following links, and the opened folder is mounted, not its path. Only
the standard library; started with `-I -S`.
"""

import ctypes
import os
import sys

MS_BIND = 4096
FOLDER = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


def open_folder(path):
    """Open an absolute path part by part; OSError where a part is a link or no folder."""
    handle = os.open("/", FOLDER)
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            raise ValueError("the path leads upward")
        inner = os.open(part, FOLDER, dir_fd=handle)
        os.close(handle)
        handle = inner
    return handle


def bind(source, target):
    """Mount the folder; mount(8) would resolve its path once more."""
    libc = ctypes.CDLL(None, use_errno=True)
    opened = f"/proc/self/fd/{open_folder(source)}"
    if libc.mount(opened.encode(), os.fsencode(target), None, ctypes.c_ulong(MS_BIND), None) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    try:
        bind(sys.argv[1], sys.argv[2])
    except (OSError, ValueError) as error:
        sys.exit(f"{getattr(error, 'strerror', None) or error}")
