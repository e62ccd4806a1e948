"""Drop what a process inherits from the starter of Sluice, then become the given command.

usage: drop-inherited.py COMMAND...

Descriptors: Node closes them for a new process only up to the first unused number above 15. Keys: the session keyring
passes through every namespace and change of user, so all workspaces would share the starter's. Only the standard
library; started with `-I -S`.
"""

import ctypes
import errno
import os
import platform
import signal
import sys

STANDARD_ERROR = 2
# Numbers of keyctl(2).
KEYCTL = {"x86_64": 250, "aarch64": 219}
JOIN_SESSION_KEYRING = 1

# Python ignores both signals, and a command inherits ignored signals.
for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(ignored, signal.SIG_DFL)
# Not the limit of open files: a descriptor stays open when the limit falls below its number.
os.closerange(STANDARD_ERROR + 1, max(map(int, os.listdir("/proc/self/fd"))) + 1)
if platform.machine() not in KEYCTL:
    sys.exit(f"Workspaces run on x86-64 and aarch64, not on {platform.machine()}.")
libc = ctypes.CDLL(None, use_errno=True)
# A new keyring without a name. A kernel that has no keys, or a container that refuses them, shares none.
if libc.syscall(KEYCTL[platform.machine()], JOIN_SESSION_KEYRING, None) < 0:
    number = ctypes.get_errno()
    if number not in (errno.ENOSYS, errno.EPERM):
        sys.exit(f"The kernel makes no new keyring: {os.strerror(number)}. See /proc/key-users and kernel.keys.maxkeys.")
os.execvp(sys.argv[1], sys.argv[1:])
