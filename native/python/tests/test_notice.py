"""What the holder of a lease is told, from a broker that answers when there is news."""

import http.server
import json
import threading
import time
import urllib.parse

import pytest

from sluice_gpu import _notice, on_reclaim

QUIET = {"mark": "q", "held": True, "notice": None, "forTeam": None, "idleEndsAt": None, "usedMemoryBytes": 0}
NOTICE = {"at": "2099-01-01T00:00:00.000Z", "finishAt": "2099-01-01T00:01:30.000Z", "releaseAt": "2099-01-01T00:02:00Z"}


@pytest.fixture(autouse=True)
def nobody_is_told():
    yield
    _notice.forget()
    _notice._callbacks.clear()


@pytest.fixture
def broker(monkeypatch, tmp_path):
    """Answers `/v1/leases/lea-1/notice` with what is in `answers`, in turn; `asked` are the marks and credentials."""
    answers, asked = [], []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            url = urllib.parse.urlparse(self.path)
            assert url.path == "/v1/leases/lea-1/notice"
            asked.append((urllib.parse.parse_qs(url.query).get("known", [""])[0], self.headers["Authorization"]))
            while not answers:
                time.sleep(0.01)
            body = json.dumps(answers.pop(0)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "credential").write_text("slw_secret\n")
    monkeypatch.setenv("SLUICE_BROKER_URL", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("SLUICE_CREDENTIAL_FILE", str(tmp_path / "credential"))
    monkeypatch.setattr(_notice, "FIRST_SECONDS", 0)
    yield answers, asked
    answers.append({**QUIET, "held": False})
    server.shutdown()


def settled(asked, count):
    deadline = time.monotonic() + 5
    while len(asked) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(asked) >= count


def test_a_reclaim_is_told_once_calls_what_was_registered_and_may_be_withdrawn(broker, capfd):
    answers, asked = broker
    saved = []

    @on_reclaim
    def save():
        saved.append(threading.current_thread().name)

    on_reclaim(lambda: 1 / 0)
    on_reclaim(lambda: saved.append("too"))
    told = {**QUIET, "mark": "n", "notice": NOTICE, "forTeam": "nlp", "usedMemoryBytes": 2**30}
    answers += [QUIET, told, told, QUIET]
    _notice.watch("lea-1")
    _notice.watch("lea-1")
    settled(asked, 5)
    assert saved == ["sluice-notice", "too"]
    shown = capfd.readouterr().err
    assert shown.count("taken back in") == 1
    assert "team nlp needs what is guaranteed to it. The notebook lives on. 1.0 GiB in its memory is kept." in shown
    assert "ZeroDivisionError" in shown
    assert "it stays yours" in shown
    assert [mark for mark, _ in asked[:4]] == ["", "q", "n", "n"]
    assert {credential for _, credential in asked} == {"Bearer slw_secret"}


def test_towards_its_end_a_notice_asks_once_to_finish(broker, capfd):
    answers, asked = broker
    begun = {**NOTICE, "at": "2026-11-26T00:00:00.000Z"}
    finishing = {**begun, "finishAt": "2026-11-26T00:01:30.000Z"}
    told = {**QUIET, "mark": "n", "notice": finishing, "forTeam": "nlp"}
    answers += [{**told, "notice": begun}, told, told, {**QUIET, "mark": "m", "notice": {**finishing, "at": finishing["finishAt"]}}]
    _notice.watch("lea-1")
    settled(asked, 5)
    assert capfd.readouterr().err.count("start nothing long") == 1


def test_idle_time_is_told_once_a_stretch(broker, capfd):
    answers, asked = broker
    idle = {**QUIET, "mark": "i", "idleEndsAt": "2099-01-01T00:00:00Z"}
    answers += [idle, idle, QUIET, idle]
    _notice.watch("lea-1")
    settled(asked, 5)
    assert capfd.readouterr().err.count("no work for a while") == 2


def test_each_change_of_what_is_told_reaches_the_workspaces_server(broker, monkeypatch):
    answers, asked = broker
    changes = []
    monkeypatch.setattr(_notice._news, "changed", lambda: changes.append(len(asked)))
    idle = {**QUIET, "mark": "i", "idleEndsAt": "2099-01-01T00:00:00Z"}
    reclaim = {**QUIET, "mark": "n", "notice": {**NOTICE, "finishAt": "2099-01-01T00:00:00Z"}}
    answers += [QUIET, idle, idle, reclaim]
    _notice.watch("lea-1")
    settled(asked, 5)
    assert changes[:3] == [1, 2, 4]


def test_nothing_is_told_after_the_end(broker, capfd):
    answers, asked = broker
    _notice.watch("lea-1")
    settled(asked, 1)
    _notice.forget()
    answers.append({**QUIET, "mark": "n", "notice": NOTICE})
    time.sleep(0.2)
    assert len(asked) == 1
    assert capfd.readouterr().err == ""
