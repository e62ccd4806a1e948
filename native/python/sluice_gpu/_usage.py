"""What the workspace's processes use, for its page: where its launcher cannot see them, as on a cluster."""

import json
import os
import re

from jupyter_server.base.handlers import APIHandler
from tornado.web import authenticated

_MS_A_TICK = 1000 // os.sysconf("SC_CLK_TCK")
_OWN_MEMORY = re.compile(rb"^Rss(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)


def usage(proc="/proc"):
    """`{cpuMs, memoryBytes}` of all processes in this process namespace: processor time, and memory theirs alone.

    Processor time has that of ended children in it, once waited for, so that the sum does not shrink; mapped files are
    no memory of theirs.
    """
    cpu, memory = 0, 0
    for pid in filter(str.isdigit, os.listdir(proc)):
        try:
            with open(f"{proc}/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            with open(f"{proc}/{pid}/status", "rb") as file:
                status = file.read()
        except OSError:
            # It ended meanwhile.
            continue
        cpu += sum(int(field) for field in fields[11:15])
        memory += sum(int(kib) for kib in _OWN_MEMORY.findall(status))
    return {"cpuMs": cpu * _MS_A_TICK, "memoryBytes": memory * 1024}


class UsageHandler(APIHandler):
    """`GET sluice-gpu/usage`: what `usage` says."""

    @authenticated
    def get(self):
        """Answers at once."""
        self.set_header("Cache-Control", "no-store")
        self.finish(json.dumps(usage()))
