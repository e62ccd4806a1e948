"""What JupyterLab's status bar and panel show, as server-sent events from the workspace's own server."""

import asyncio
import datetime
import json

from jupyter_server.base.handlers import JupyterHandler
from tornado.iostream import StreamClosedError
from tornado.web import authenticated

from . import _broker, _text

ASK_SECONDS = 3.0
# Longer than this without a byte, and proxies between may think that the connection is dead.
KEEP_ALIVE_SECONDS = 20.0


class StatusStream(JupyterHandler):
    """`GET sluice-gpu/status`: `{text, detail, panel}` at once and whenever it changes; no broker, no `panel`."""

    @authenticated
    async def get(self):
        """Streams until the browser leaves."""
        self.set_header("Content-Type", "text/event-stream")
        self.set_header("Cache-Control", "no-store")
        broker = _broker.AsyncBroker()
        last, silent = None, 0.0
        try:
            while not self.request.connection.stream.closed():
                shown = await self._shown(broker)
                if shown != last:
                    self.write(f"data: {json.dumps(shown)}\n\n")
                elif silent >= KEEP_ALIVE_SECONDS:
                    self.write(": still here\n\n")
                silent = 0.0 if shown != last or silent >= KEEP_ALIVE_SECONDS else silent + ASK_SECONDS
                last = shown
                await self.flush()
                await asyncio.sleep(ASK_SECONDS)
        except StreamClosedError:
            pass

    async def _shown(self, broker):
        try:
            status = await self._ask(broker, "/v1/status")
            leases = (await self._ask(broker, "/v1/leases"))["leases"]
        except Exception as error:  # noqa: BLE001 - a broker that is away is shown, and asked again
            return {"text": "GPU: no answer from the broker", "detail": str(error), "panel": None}
        pill = _text.pill(status, datetime.datetime.now(datetime.timezone.utc))
        return {**pill, "panel": _text.panel(status, leases)}

    async def _ask(self, broker, path):
        return json.loads((await broker.fetch(path, request_timeout=5)).body)
