"""Jupyter server extension: tells the broker which kernels live, streams the status bar's text, measures, reads ahead."""

import asyncio
import glob
import json
import os
import re
import time

from . import _broker
from ._client import start_time

REPORT_SECONDS = 5.0
LOOK_SECONDS = 0.5


def _load_jupyter_server_extension(app):
    """Called by Jupyter when the server starts."""
    broker = os.environ.get("SLUICE_BROKER_URL")
    credential = os.environ.get("SLUICE_CREDENTIAL_FILE")
    if not broker or not credential:
        app.log.info("sluice_gpu: no broker configured; kernels are not reported")
        return
    reporter = Reporter(app.kernel_manager, app.log)
    app.io_loop.call_later(0, reporter.start)
    from jupyter_server.utils import url_path_join

    from ._datasets import DatasetHandler
    from ._status_stream import StatusStream
    from ._usage import UsageHandler

    handlers = {"datasets": DatasetHandler, "status": StatusStream, "usage": UsageHandler}
    app.web_app.add_handlers(
        ".*$", [(url_path_join(app.base_url, "sluice-gpu", name), handler) for name, handler in handlers.items()]
    )


def alive_owners(kernel_manager):
    """Every kernel of this server that lives, and every other process here that may hold a lease of its own."""
    alive, kernels = [], set()
    for kernel_id in kernel_manager.list_kernel_ids():
        try:
            pid = kernel_manager.get_kernel(kernel_id).provisioner.pid
        except (AttributeError, KeyError):
            # Between two states: it is told at the next look.
            continue
        started = start_time(pid) if pid else None
        if started is not None:
            kernels.add(pid)
            alive.append({"kind": "kernel", "kernelId": kernel_id, "pid": pid, "startTime": started})
    # A script's or `sluice run`'s owner socket carries its pid in the name.
    for path in glob.glob(os.path.join(os.environ.get("SLUICE_RUNTIME_DIR", ""), "owner-*.sock")):
        match = re.search(r"owner-(\d+)\.sock$", path)
        pid = int(match.group(1)) if match else None
        started = start_time(pid) if pid and pid not in kernels else None
        if started is not None:
            alive.append({"kind": "process", "pid": pid, "startTime": started})
    return sorted(alive, key=lambda owner: (owner["pid"], owner["startTime"]))


class Reporter:
    """Sends the living owners every five seconds, and at once when a kernel has started, ended or restarted."""

    def __init__(self, kernel_manager, log):
        self._kernels = kernel_manager
        self._log = log
        self._last = None
        self._sent_at = 0.0
        self._failed = False
        self._task = None

    def start(self):
        """Begin to report; must be called on the server's event loop."""
        self._task = asyncio.ensure_future(self._run())

    async def _run(self):
        broker = _broker.AsyncBroker()
        while True:
            try:
                alive = alive_owners(self._kernels)
                if alive != self._last or time.monotonic() - self._sent_at >= REPORT_SECONDS:
                    await self._send(broker, alive)
                    self._last, self._sent_at = alive, time.monotonic()
                    if self._failed:
                        self._failed = False
                        self._log.info("sluice_gpu: the broker hears about kernels again")
            except Exception as error:  # noqa: BLE001 - reporting goes on whatever happens to one report
                self._sent_at = time.monotonic()
                self._last = None
                if not self._failed:
                    self._failed = True
                    self._log.warning("sluice_gpu: kernels could not be reported: %s", error)
                await asyncio.sleep(1)
            await asyncio.sleep(LOOK_SECONDS)

    async def _send(self, broker, alive):
        await broker.fetch(
            "/v1/owners",
            method="PUT",
            headers={"Content-Type": "application/json"},
            body=json.dumps({"alive": alive}),
            request_timeout=4,
        )
