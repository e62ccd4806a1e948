"""Become the given command, with a log of limited size as its standard output and standard error.

usage: bounded-log.py MAX-BYTES COMMAND...

Standard output is the log: a file that is open for reading and writing. A process of its own copies the output of the
command and of all its descendants to the log, and keeps the last part. The process ends when the last of them has
ended or closed its output. The command gets a pipe and never the file, because a hostile program could fill the disk
through a file faster than any watch could look. Only the standard library; started with `-I -S`.
"""

import os
import signal
import sys
import time

CHUNK = 65536
# A program that prints faster waits: its output would cost the host's disk and processor.
BYTES_A_SECOND = 8 * 1024 * 1024
NICENESS = 19


def append(log, chunk, limit):
    """Write to the log. Above the limit, only whole lines of its last half stay."""
    size = os.fstat(log).st_size
    if size + len(chunk) <= limit:
        os.pwrite(log, chunk, size)
        return
    last = (os.pread(log, size, 0) + chunk)[-(limit // 2) :]
    last = last[last.find(b"\n") + 1 :]
    # In this order no reader finds an empty log.
    os.pwrite(log, last, 0)
    os.ftruncate(log, len(last))


def copy(source, log, limit):
    """Copy until the end of the output. A full disk loses lines, and never stops the command."""
    while chunk := os.read(source, CHUNK):
        try:
            append(log, chunk, limit)
        except OSError:
            pass
        time.sleep(len(chunk) / BYTES_A_SECOND)


def start_copying(limit):
    """Start the process that copies, and return the end of the pipe to write to."""
    source, sink = os.pipe()
    child = os.fork()
    if child != 0:
        os.close(source)
        os.waitpid(child, 0)
        return sink
    # The second fork gives the process to init: the command has no child that it does not know.
    os.setsid()
    if os.fork() == 0:
        os.close(sink)
        os.nice(NICENESS)
        copy(source, sys.stdout.fileno(), limit)
    os._exit(0)


if __name__ == "__main__":
    sink = start_copying(int(sys.argv[1]))
    for number in (1, 2):
        os.dup2(sink, number)
    # Python ignores both signals, and a command inherits ignored signals.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    os.execvp(sys.argv[2], sys.argv[2:])
