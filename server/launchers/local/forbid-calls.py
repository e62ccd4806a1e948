"""Forbid system calls that lead out of namespaces, then become the given command. No child gets them back.

usage: forbid-calls.py COMMAND...

Kernel keys and several families of sockets (among them AF_VSOCK, which reaches a virtual machine's host) know no
namespace. Calls of a second architecture have numbers of their own, so they are refused as a whole. Runs with CAP_SYS_ADMIN in its user namespace. Only the standard library; started with
`-I -S`.
"""

import ctypes
import errno
import os
import platform
import signal
import struct
import sys

# linux/audit.h, and asm/unistd.h of each architecture.
ARCHITECTURES = {
    "x86_64": (
        0xC000003E,
        {"socket": 41, "socketpair": 53, "add_key": 248, "request_key": 249, "keyctl": 250},
    ),
    "aarch64": (
        0xC00000B7,
        {"socket": 198, "socketpair": 199, "add_key": 217, "request_key": 218, "keyctl": 219},
    ),
}
# Numbers of all architectures. Memory of memfd_secret appears in no sum, and io_uring makes sockets.
COMMON = {"io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "memfd_secret": 447}
# Calls of x32, which share an architecture with those of x86-64, begin here.
X32 = 0x4000_0000
# AF_UNIX, AF_INET, AF_INET6, AF_NETLINK
FAMILIES = (1, 2, 10, 16)

# linux/bpf_common.h: load a word of the call's data; compare it with a number; answer.
LOAD, EQUAL, AT_LEAST, ANSWER = 0x20, 0x15, 0x35, 0x06
# linux/seccomp.h
ALLOW, REFUSE = 0x7FFF_0000, 0x0005_0000
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2


def program(machine):
    """Instructions of the filter: each a code, two distances to jump (when true, when false) and a number."""
    architecture, numbers = ARCHITECTURES[machine]
    sockets = (numbers["socket"], numbers["socketpair"])
    refused = [number for number in (numbers | COMMON).values() if number not in sockets]
    code = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, architecture), (ANSWER, 0, 0, REFUSE | errno.ENOSYS)]
    code += [(LOAD, 0, 0, NUMBER), (AT_LEAST, 0, 1, X32), (ANSWER, 0, 0, REFUSE | errno.ENOSYS)]
    for number in refused:
        code += [(EQUAL, 0, 1, number), (ANSWER, 0, 0, REFUSE | errno.ENOSYS)]
    code += [(EQUAL, 2, 0, sockets[0]), (EQUAL, 1, 0, sockets[1]), (ANSWER, 0, 0, ALLOW), (LOAD, 0, 0, FIRST_ARGUMENT)]
    for family in FAMILIES:
        code += [(EQUAL, 0, 1, family), (ANSWER, 0, 0, ALLOW)]
    return [*code, (ANSWER, 0, 0, REFUSE | errno.EAFNOSUPPORT)]


class Program(ctypes.Structure):
    """struct sock_fprog of linux/filter.h."""

    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def forbid():
    """Put the filter on this process and all that it starts; end with a sentence where the kernel refuses."""
    code = program(platform.machine())
    wanted = Program(len(code), b"".join(struct.pack("=HBBI", *instruction) for instruction in code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(wanted), 0, 0) != 0:
        reason = os.strerror(ctypes.get_errno())
        sys.exit(f"The kernel accepts no system-call filter (CONFIG_SECCOMP_FILTER): {reason}.")


if __name__ == "__main__":
    # Python ignores both signals, and a command inherits ignored signals.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    forbid()
    os.execvp(sys.argv[1], sys.argv[1:])
