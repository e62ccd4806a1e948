"""A person's way through a running installation, for tests: sign in, launch a workspace, run cells in a real kernel.

Needs tornado (it is in every Jupyter environment) and nothing else.
"""

import asyncio
import json
import re
import time
import urllib.parse
import uuid

from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import websocket_connect


class LiveProblem(Exception):
    """The installation did not do what a person would expect."""


class Site:
    """One origin with its cookies. Names under `.localhost` are reached on the loopback address, as browsers do."""

    def __init__(self, origin):
        self.origin = origin.rstrip("/")
        parts = urllib.parse.urlsplit(self.origin)
        self._host = parts.netloc
        local = parts.hostname == "localhost" or parts.hostname.endswith(".localhost")
        self._base = f"{parts.scheme}://127.0.0.1:{parts.port}" if local else self.origin
        self._cookies = {}

    def _headers(self):
        cookies = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        return {"Host": self._host, "Origin": self.origin, **({"Cookie": cookies} if cookies else {})}

    async def fetch(self, method, path, body=None, form=None):
        """(status, body as text); redirects are not followed, cookies are kept."""
        headers = self._headers()
        data = None
        if form is not None:
            data = urllib.parse.urlencode(form)
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        elif body is not None or method in ("POST", "PUT", "PATCH"):
            data = json.dumps(body if body is not None else {})
            headers["Content-Type"] = "application/json"
        request = HTTPRequest(
            self._base + path, method=method, headers=headers, body=data, follow_redirects=False, request_timeout=60
        )
        answer = await AsyncHTTPClient().fetch(request, raise_error=False)
        for line in answer.headers.get_list("Set-Cookie"):
            name, _, value = line.split(";")[0].partition("=")
            self._cookies[name.strip()] = value.strip()
        return answer.code, answer.body.decode() if answer.body else ""

    async def json(self, method, path, body=None):
        """The parsed answer; anything but success is a LiveProblem."""
        status, text = await self.fetch(method, path, body)
        if not 200 <= status < 300:
            raise LiveProblem(f"{method} {path}: {status} {text[:500]}")
        return json.loads(text) if text else None

    async def websocket(self, path):
        """An open WebSocket with this origin's cookies."""
        url = self._base.replace("http", "ws", 1) + path
        return await websocket_connect(HTTPRequest(url, headers=self._headers()), max_message_size=1 << 28)


class Portal(Site):
    """The portal, for one person."""

    async def sign_in(self, email, password):
        """By e-mail and password, as the sign-in page does."""
        csrf = await self.json("GET", "/api/auth/csrf")
        form = {"csrfToken": csrf["csrfToken"], "email": email, "password": password, "json": "true"}
        status, text = await self.fetch("POST", "/api/auth/callback/credentials", form=form)
        me_status, _ = await self.fetch("GET", "/api/v1/me")
        if me_status != 200:
            raise LiveProblem(f"sign-in as {email}: {status} {text[:300]}")

    async def launch(self, name, image="cuda-python"):
        """A new running workspace of this name, or the one there is; returns its view."""
        found = (await self.json("GET", "/api/v1/workspaces"))["workspaces"]
        workspace = next((w for w in found if w["name"] == name), None)
        if workspace is None:
            workspace = await self.json("POST", "/api/v1/workspaces", {"name": name, "image": image})
        elif workspace["desired"] != "running" or workspace["observed"] == "failed":
            await self.json("POST", f"/api/v1/workspaces/{workspace['id']}/start")
        until = time.monotonic() + 180
        while time.monotonic() < until:
            workspace = await self.json("GET", f"/api/v1/workspaces/{workspace['id']}")
            if workspace["observed"] == "running":
                return workspace
            if workspace["observed"] == "failed":
                raise LiveProblem(f"workspace {name} failed: {workspace['message']}")
            await asyncio.sleep(0.1)
        raise LiveProblem(f"workspace {name} is still {workspace['observed']} after 180 s")

    async def stop(self, workspace_id):
        """Stop the workspace and wait for its end."""
        await self.json("POST", f"/api/v1/workspaces/{workspace_id}/stop")
        until = time.monotonic() + 60
        while (await self.json("GET", f"/api/v1/workspaces/{workspace_id}"))["observed"] != "stopped":
            if time.monotonic() > until:
                raise LiveProblem(f"workspace {workspace_id} does not stop")
            await asyncio.sleep(0.2)

    async def open(self, workspace_id):
        """The workspace's Jupyter server, entered by the one-time link."""
        url = (await self.json("POST", f"/api/v1/workspaces/{workspace_id}/open"))["url"]
        parts = urllib.parse.urlsplit(url)
        jupyter = Jupyter(f"{parts.scheme}://{parts.netloc}")
        status, text = await jupyter.fetch("GET", f"{parts.path}?{parts.query}")
        if status != 303:
            raise LiveProblem(f"opening the workspace: {status} {text[:300]}")
        await jupyter.fetch("GET", "/lab")
        return jupyter


class Jupyter(Site):
    """A Jupyter server behind the gateway."""

    async def fetch(self, method, path, body=None, form=None):
        """Like Site.fetch, with the token that Jupyter wants back from its own cookie."""
        xsrf = self._cookies.get("_xsrf")
        if method != "GET" and xsrf:
            path += ("&" if "?" in path else "?") + "_xsrf=" + urllib.parse.quote(xsrf)
        return await super().fetch(method, path, body, form)

    async def kernel(self, notebook=None):
        """A new kernel; with `notebook` in a session of that name, as JupyterLab starts it."""
        if notebook is None:
            model = await self.json("POST", "/api/kernels", {"name": "python3"})
        else:
            session = {"kernel": {"name": "python3"}, "name": notebook, "path": notebook, "type": "notebook"}
            model = (await self.json("POST", "/api/sessions", session))["kernel"]
        kernel = Kernel(self, model["id"])
        await kernel.connect()
        return kernel


class Result:
    """What one cell gave: text in the order of its appearance, mime types that were shown, and the error's name."""

    def __init__(self):
        self.text = ""
        self.mimes = set()
        self.error = None
        self.seconds = 0.0

    @property
    def ok(self):
        """Whether the cell ended without an error."""
        return self.error is None


class Kernel:
    """One kernel over its WebSocket."""

    def __init__(self, jupyter, kernel_id):
        self.id = kernel_id
        self._jupyter = jupyter
        self._session = uuid.uuid4().hex
        self._socket = None

    async def connect(self):
        """Open the channels."""
        self._socket = await self._jupyter.websocket(f"/api/kernels/{self.id}/channels?session_id={self._session}")

    async def interrupt(self):
        """What the Stop button does."""
        await self._jupyter.json("POST", f"/api/kernels/{self.id}/interrupt")

    async def restart(self):
        """A new process for the same kernel id."""
        await self._jupyter.json("POST", f"/api/kernels/{self.id}/restart")

    async def close(self):
        """End the kernel."""
        if self._socket is not None:
            self._socket.close()
        await self._jupyter.json("DELETE", f"/api/kernels/{self.id}")

    async def run(self, code, timeout=120):
        """Execute one cell and wait for its end."""
        header = {
            "msg_id": uuid.uuid4().hex,
            "username": "test",
            "session": self._session,
            "msg_type": "execute_request",
            "version": "5.3",
        }
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": True,
        }
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
        began = time.monotonic()
        await self._socket.write_message(json.dumps(message))
        result, idle, replied = Result(), False, False
        while not (idle and replied):
            left = timeout - (time.monotonic() - began)
            if left <= 0:
                raise LiveProblem(f"no end after {timeout} s: {code[:80]!r}; so far: {result.text[-500:]}")
            try:
                raw = await asyncio.wait_for(self._socket.read_message(), left)
            except asyncio.TimeoutError:
                continue
            if raw is None:
                raise LiveProblem("the kernel's WebSocket was closed")
            if isinstance(raw, bytes):
                continue
            message = json.loads(raw)
            if message["parent_header"].get("msg_id") != header["msg_id"]:
                continue
            kind, body = message["header"]["msg_type"], message["content"]
            if kind == "stream":
                result.text += body["text"]
            elif kind in ("display_data", "execute_result", "update_display_data"):
                result.mimes |= set(body["data"])
                result.text += body["data"].get("text/plain", "") + "\n"
            elif kind == "error":
                result.error = body["ename"]
                result.text += re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(body["traceback"])) + "\n"
            elif kind == "status" and body["execution_state"] == "idle":
                idle = True
            elif kind == "execute_reply":
                replied = True
                if body["status"] != "ok" and result.error is None:
                    result.error = body.get("ename", body["status"])
        result.seconds = time.monotonic() - began
        return result
