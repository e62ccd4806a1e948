"""Close all descriptors above standard error, then become the given command.

usage: close-descriptors.py COMMAND...

Node closes descriptors for a new process only up to the first unused number above 15. A descriptor that the starter of
Sluice left open above it would pass into the sandbox. Only the standard library; started with `-I -S`.
"""

import os
import signal
import sys

STANDARD_ERROR = 2

# Python ignores both signals, and a command inherits ignored signals.
for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(ignored, signal.SIG_DFL)
# Not the limit of open files: a descriptor stays open when the limit falls below its number.
os.closerange(STANDARD_ERROR + 1, max(map(int, os.listdir("/proc/self/fd"))) + 1)
os.execvp(sys.argv[1], sys.argv[1:])
