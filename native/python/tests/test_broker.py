"""A broker whose answers are endless, slow, or redirects."""

import http.server
import threading
import time
import urllib.error

import pytest
from sluice_gpu import _broker


class Hostile(http.server.BaseHTTPRequestHandler):
    elsewhere = 0

    def do_GET(self):
        if self.path == "/redirecting":
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            return
        if self.path == "/elsewhere":
            Hostile.elsewhere += 1
        self.send_response(200)
        self.end_headers()
        try:
            if self.path == "/endless":
                while True:
                    self.wfile.write(b" " * 65536)
            while self.path == "/slow":
                self.wfile.write(b" ")
                time.sleep(0.1)
            self.wfile.write(b'{"short": true}')
        except OSError:
            pass

    def log_message(self, *_):
        pass


@pytest.fixture
def broker(monkeypatch, tmp_path):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    credential = tmp_path / "credential"
    credential.write_text("secret")
    monkeypatch.setenv("SLUICE_CREDENTIAL_FILE", str(credential))
    monkeypatch.setenv("SLUICE_BROKER_URL", f"http://127.0.0.1:{server.server_port}")
    yield server
    server.shutdown()


def test_a_short_answer_is_read(broker):
    assert _broker.get_json("/short", 5) == {"short": True}


def test_an_endless_answer_ends_at_its_limit(broker):
    with pytest.raises(OSError, match="larger than 4 MiB"):
        _broker.get_json("/endless", 30)


def test_a_slow_answer_ends_in_time(broker):
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        _broker.get_json("/slow", 1)
    assert time.monotonic() - began < 5


def test_no_redirect_is_followed(broker):
    with pytest.raises(urllib.error.HTTPError):
        _broker.get_json("/redirecting", 5)
    assert Hostile.elsewhere == 0
