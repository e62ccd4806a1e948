"""The broker's HTTP for the package's own Python parts: over TCP, or over the Unix socket of a local workspace."""

import os

SCHEME = "http+unix://"


def socket_of(url):
    """The Unix socket that a broker's address names; None for an address of another kind."""
    if not url.startswith(SCHEME):
        return None
    from urllib.parse import unquote

    return unquote(url[len(SCHEME) :].split("/")[0])


def credential():
    """What the workspace shows to the broker."""
    with open(os.environ["SLUICE_CREDENTIAL_FILE"], encoding="utf-8") as file:
        return file.read().strip()


def get_json(path, timeout):
    """Ask for `path` and wait for the answer; blocking, for threads."""
    # Imported late: only a program with a lease pays for it.
    import http.client
    import json
    import urllib.request

    base = os.environ["SLUICE_BROKER_URL"].rstrip("/")
    socket_path = socket_of(base)
    call = urllib.request.Request(
        (base if socket_path is None else "http://broker") + path,
        headers={"Authorization": f"Bearer {credential()}"},
    )
    # The broker is asked directly, as by the native client.
    handlers = [urllib.request.ProxyHandler({})]
    if socket_path is not None:
        handlers.append(_unix_handler(http.client, urllib.request, socket_path))
    with urllib.request.build_opener(*handlers).open(call, timeout=timeout) as answer:
        return json.load(answer)


def _unix_handler(client, request, socket_path):
    import socket

    class Connection(client.HTTPConnection):
        def connect(self):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(self.timeout)
            self.sock.connect(socket_path)

    class Handler(request.HTTPHandler):
        def http_open(self, req):
            return self.do_open(Connection, req)

    return Handler()


class AsyncBroker:
    """Requests from the Jupyter server's event loop."""

    def __init__(self, url=None):
        from tornado.httpclient import AsyncHTTPClient
        from tornado.simple_httpclient import SimpleAsyncHTTPClient

        self._base = (url or os.environ["SLUICE_BROKER_URL"]).rstrip("/")
        socket_path = socket_of(self._base)
        if socket_path is None:
            self._client = AsyncHTTPClient()
        else:
            self._base = "http://broker"
            self._client = SimpleAsyncHTTPClient(force_instance=True, resolver=_resolver(socket_path))

    async def fetch(self, path, **options):
        """The answer to a request for `path` with the workspace's credential; `options` as tornado takes them."""
        headers = {"Authorization": f"Bearer {credential()}", **options.pop("headers", {})}
        return await self._client.fetch(self._base + path, headers=headers, **options)


def _resolver(socket_path):
    import socket

    from tornado.netutil import Resolver

    class ToSocket(Resolver):
        """Every host is the socket."""

        def initialize(self):
            pass

        def close(self):
            pass

        async def resolve(self, host, port, family=socket.AF_UNSPEC):
            return [(socket.AF_UNIX, socket_path)]

    return ToSocket()
