"""The broker's HTTP for the package's own Python parts: over TCP, or over the Unix socket of a local workspace."""

import os

SCHEME = "http+unix://"
# Longest answer of the broker, bytes: lists of leases and GPUs.
LONGEST_ANSWER = 4 * 1024 * 1024


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
    """Ask for `path` and wait at most `timeout` seconds for the whole answer; blocking, for threads."""
    # Imported late: only a program with a lease pays for it.
    import http.client
    import json
    import time
    import urllib.request

    base = os.environ["SLUICE_BROKER_URL"].rstrip("/")
    socket_path = socket_of(base)
    call = urllib.request.Request(
        (base if socket_path is None else "http://broker") + path,
        headers={"Authorization": f"Bearer {credential()}"},
    )
    # The broker is asked directly, as by the native client.
    handlers = [urllib.request.ProxyHandler({}), _no_redirects(urllib.request)]
    if socket_path is not None:
        handlers.append(_unix_handler(http.client, urllib.request, socket_path))
    deadline = time.monotonic() + timeout
    with urllib.request.build_opener(*handlers).open(call, timeout=timeout) as answer:
        return json.loads(_read(answer, deadline))


def _read(answer, deadline):
    """The body of an answer; its parts may come slowly, so that the limit of each read is none of the whole."""
    import time

    body = b""
    while part := answer.read1(64 * 1024):
        body += part
        if len(body) > LONGEST_ANSWER:
            raise OSError("the broker's answer is larger than 4 MiB")
        if time.monotonic() > deadline:
            raise TimeoutError("the broker's answer was not complete in time")
    return body


def _no_redirects(request):
    class Handler(request.HTTPRedirectHandler):
        def redirect_request(self, *_):
            # A redirected request would carry the workspace's credential to another host.
            return None

    return Handler()


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
        from tornado.simple_httpclient import SimpleAsyncHTTPClient

        self._base = (url or os.environ["SLUICE_BROKER_URL"]).rstrip("/")
        socket_path = socket_of(self._base)
        way = {} if socket_path is None else {"resolver": _resolver(socket_path)}
        if socket_path is not None:
            self._base = "http://broker"
        self._client = SimpleAsyncHTTPClient(force_instance=True, max_body_size=LONGEST_ANSWER, **way)

    async def fetch(self, path, **options):
        """The answer to a request for `path` with the workspace's credential; `options` as tornado takes them."""
        headers = {"Authorization": f"Bearer {credential()}", **options.pop("headers", {})}
        # A redirect would carry the credential to another host, and a compressed answer grows after it was counted.
        safe = {"follow_redirects": False, "decompress_response": False}
        return await self._client.fetch(self._base + path, headers=headers, **safe, **options)


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
