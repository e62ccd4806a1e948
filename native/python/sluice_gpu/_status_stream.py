"""What JupyterLab's status bar and panel show, as server-sent events from the workspace's own server."""

import asyncio
import datetime
import json
import os
import time

from jupyter_server.base.handlers import JupyterHandler
from tornado.iostream import StreamClosedError
from tornado.web import authenticated

from . import _broker, _news, _text

ASK_SECONDS = 3.0
# Interval of checks for notes from programs of this workspace
LOOK_SECONDS = 0.2
# Longer than this without a byte, and proxies between may think that the connection is dead.
KEEP_ALIVE_SECONDS = 20.0


class StatusStream(JupyterHandler):
    """`GET sluice-gpu/status`: `{text, detail, portal, panel}` at once and whenever it changes; no broker, no `panel`."""

    @authenticated
    async def get(self):
        """Streams until the browser leaves."""
        self.set_header("Content-Type", "text/event-stream")
        self.set_header("Cache-Control", "no-store")
        broker = _broker.AsyncBroker()
        last, written = None, time.monotonic()
        try:
            while not self.request.connection.stream.closed():
                mark = _news.mark()
                shown = await self._shown(broker)
                if shown != last:
                    self.write(f"data: {json.dumps(shown)}\n\n")
                    last, written = shown, time.monotonic()
                elif time.monotonic() - written >= KEEP_ALIVE_SECONDS:
                    self.write(": still here\n\n")
                    written = time.monotonic()
                await self.flush()
                until = time.monotonic() + ASK_SECONDS
                await asyncio.sleep(LOOK_SECONDS)
                while mark == _news.mark() and time.monotonic() < until:
                    await asyncio.sleep(LOOK_SECONDS)
        except StreamClosedError:
            pass

    async def _shown(self, broker):
        portal = {"url": os.environ.get("SLUICE_PORTAL_URL"), "workspaceId": os.environ.get("SLUICE_WORKSPACE_ID")}
        try:
            status = await self._ask(broker, "/v1/status")
            leases = (await self._ask(broker, "/v1/leases"))["leases"]
        except Exception as error:  # noqa: BLE001 - a broker that is away is shown, and asked again
            return {"text": "GPU: no answer from the broker", "detail": str(error), "portal": portal, "panel": None}
        waiting = _news.waiting()
        pill = _text.pill(status, datetime.datetime.now(datetime.timezone.utc), waiting)
        return {**pill, "portal": portal, "panel": _text.panel(status, leases, waiting)}

    async def _ask(self, broker, path):
        return json.loads((await broker.fetch(path, request_timeout=5)).body)
