"""The server extension in a real Jupyter server: which kernels it reports, and when."""

import http.server
import json
import os
import pathlib
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

pytest.importorskip("jupyter_server")
HERE = pathlib.Path(__file__).resolve().parent.parent


ANSWERS = {
    "/v1/status": {
        "workspace": {"id": "ws", "name": "w", "defaultAmount": "0.5", "defaultMilli": 500, "gpuType": "soft", "gpuPolicy": "ask"},
        "team": {"name": "vision", "quotas": [{"gpuType": "soft", "limitMilli": 1000}]},
        "free": [{"gpuType": "soft", "grantedAtOnceMilli": 750}],
        "leases": [],
    },
    "/v1/leases": {
        "leases": [
            {
                **{"id": "lea-1", "gpuType": "soft", "milli": 250, "owner": {"label": "kmeans.ipynb"}},
                **{"grantedAt": "2026-11-22T15:00:00.000Z", "endedAt": "2026-11-22T15:12:00.000Z"},
                "endReason": "given back",
            }
        ]
    },
}


@pytest.fixture
def reports():
    """An HTTP server that keeps what is PUT to /v1/owners: (alive owners, authorization)."""
    received = queue.Queue()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_PUT(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            received.put((self.path, body["alive"], self.headers["Authorization"]))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def do_GET(self):
            answer = json.dumps(ANSWERS[self.path]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield received, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def wait_until_it_listens(url, seconds=20):
    """A Jupyter server names its address before it listens there."""
    address = urllib.parse.urlsplit(url)
    until = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection((address.hostname, address.port), 1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


@pytest.fixture
def jupyter(reports, tmp_path):
    """A Jupyter server with the extension; gives a function that calls its REST API."""
    _, broker = reports
    (tmp_path / "credential").write_text("slw_secret\n")
    (tmp_path / "runtime").mkdir()
    config = HERE / "data" / "etc" / "jupyter"
    process = subprocess.Popen(
        [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"]
        + ["--ServerApp.port=0", f"--ServerApp.root_dir={tmp_path}", "--ServerApp.port_retries=0"],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "PYTHONPATH": str(HERE),
            "JUPYTER_CONFIG_PATH": str(config),
            "JUPYTER_TOKEN": "t",
            "SLUICE_BROKER_URL": broker,
            "SLUICE_CREDENTIAL_FILE": str(tmp_path / "credential"),
            "SLUICE_RUNTIME_DIR": str(tmp_path / "runtime"),
        },
        stderr=subprocess.PIPE,
        text=True,
    )
    url = None
    for line in process.stderr:
        match = re.search(r"(http://127\.0\.0\.1:\d+)/", line)
        if match:
            url = match.group(1)
            break
    threading.Thread(target=process.stderr.read, daemon=True).start()
    wait_until_it_listens(url)

    def call(method, path, body=None):
        request = urllib.request.Request(
            url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": "token t", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as response:
            text = response.read()
            return json.loads(text) if text else None

    call.url = url
    yield call
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def next_report(received, wanted, seconds=10):
    """The first report of which `wanted(alive)` is true, and how long it took to come."""
    began = time.monotonic()
    while True:
        path, alive, authorization = received.get(timeout=max(0.01, seconds - (time.monotonic() - began)))
        assert path == "/v1/owners"
        assert authorization == "Bearer slw_secret"
        if wanted(alive):
            return alive, time.monotonic() - began


def test_kernels_are_reported_at_start_restart_and_end(jupyter, reports):
    received, _ = reports
    next_report(received, lambda alive: alive == [])
    kernel = jupyter("POST", "/api/kernels", {"name": "python3"})
    alive, _ = next_report(received, lambda alive: len(alive) == 1)
    assert alive[0]["kind"] == "kernel"
    assert alive[0]["kernelId"] == kernel["id"]
    pid = alive[0]["pid"]
    started = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    assert alive[0]["startTime"] == started

    jupyter("POST", f"/api/kernels/{kernel['id']}/restart")
    alive, _ = next_report(received, lambda alive: len(alive) == 1 and alive[0]["pid"] != pid)
    assert alive[0]["kernelId"] == kernel["id"]

    jupyter("DELETE", f"/api/kernels/{kernel['id']}")
    _, seconds = next_report(received, lambda alive: alive == [])
    assert seconds < 5


def test_a_killed_kernel_leaves_the_list_within_seconds(jupyter, reports):
    received, _ = reports
    next_report(received, lambda alive: alive == [])
    jupyter("POST", "/api/kernels", {"name": "python3"})
    alive, _ = next_report(received, lambda alive: len(alive) == 1)
    pid = alive[0]["pid"]
    os.kill(pid, signal.SIGKILL)
    _, seconds = next_report(received, lambda alive: all(owner["pid"] != pid for owner in alive))
    assert seconds < 5


def test_the_report_is_repeated_without_any_change(jupyter, reports):
    received, _ = reports
    next_report(received, lambda alive: alive == [])
    _, seconds = next_report(received, lambda alive: alive == [])
    assert seconds < 7


def test_the_panels_stream_tells_what_can_be_borrowed_and_what_was(jupyter, reports):
    next_report(reports[0], lambda alive: alive == [])
    request = urllib.request.Request(jupyter.url + "/sluice-gpu/status", headers={"Authorization": "token t"})
    with urllib.request.urlopen(request, timeout=20) as response:
        line = next(line for line in response if line.startswith(b"data: "))
    shown = json.loads(line.removeprefix(b"data: "))
    assert shown["text"] == "GPU: none"
    assert shown["panel"]["types"] == [{"gpuType": "soft", "mostMilli": 1000, "atOnceMilli": 750}]
    assert [(row["amount"], row["label"], row["end"]) for row in shown["panel"]["history"]] == [
        ("0.25 soft", "kmeans.ipynb", "given back")
    ]


def test_the_panel_shows_each_state_of_a_notebook_within_a_second(jupyter, reports, tmp_path, monkeypatch):
    from sluice_gpu import _news

    next_report(reports[0], lambda alive: alive == [])
    (tmp_path / "runtime").mkdir(exist_ok=True)
    monkeypatch.setenv("SLUICE_RUNTIME_DIR", str(tmp_path / "runtime"))
    lease = {
        **{"id": "lea-2", "gpuType": "soft", "milli": 500, "memoryBytes": 4 << 30, "deviceName": "soft-0"},
        **{"gpuId": "gpu-1", "serverId": "gsv-1", "serverName": "local", "borrowed": True},
        **{"grantedAt": "2026-11-22T15:00:00.000Z", "expiresAt": "2099-11-22T16:00:00.000Z"},
    }
    owner = {"kind": "kernel", "kernelId": "k", "label": "a.ipynb", "pid": 1, "startTime": 1}
    used = {"owner": owner, "usedMemoryBytes": 0, "computePercent": 50.0, "idleEndsAt": None}
    idle = {**used, "computePercent": 0.0, "idleEndsAt": "2099-11-22T15:30:00.000Z"}
    notice = {"releaseAt": "2099-11-22T15:20:00.000Z"}

    def holds(*entries):
        # What the kernel does when an answer about its lease has changed.
        monkeypatch.setitem(ANSWERS, "/v1/status", {**ANSWERS["/v1/status"], "leases": list(entries)})
        _news.changed()

    place = {"position": 1, "of": 1, "milli": 500, "gpuType": "soft"}
    request = urllib.request.Request(jupyter.url + "/sluice-gpu/status", headers={"Authorization": "token t"})
    with urllib.request.urlopen(request, timeout=20) as response:
        told = (json.loads(line.removeprefix(b"data: ")) for line in response if line.startswith(b"data: "))
        assert next(told)["text"] == "GPU: none"
        for begin, text, states in (
            (lambda: _news.waits(place, "k"), "GPU: waiting, 1st of 1 for 0.5 soft", []),
            (_news.waits_no_more, "GPU: none", []),
            (lambda: holds({**used, "lease": lease}), "GPU: 0.5 of soft-0 on local, time limit in ", ["attached"]),
            (lambda: holds({**idle, "lease": lease}), "GPU: 0.5 of soft-0 on local, idle, idle limit in ", ["idle"]),
            (lambda: holds({**used, "lease": {**lease, "notice": notice}}), "GPU: 0.5 of soft-0 on local, taken back in ", ["reclaim"]),
            (lambda: holds(), "GPU: none", []),
        ):
            began = time.monotonic()
            begin()
            shown = next(told)
            assert time.monotonic() - began < 1
            assert shown["text"].startswith(text)
            assert [held["state"] for held in shown["panel"]["held"]] == states


def test_the_broker_can_ask_what_the_workspaces_processes_use(jupyter, reports):
    next_report(reports[0], lambda alive: alive == [])
    shown = jupyter("GET", "/sluice-gpu/usage?no_track_activity=1")
    assert sorted(shown) == ["cpuMs", "memoryBytes"]
    assert shown["cpuMs"] > 0
    assert shown["memoryBytes"] > 20 * 2**20
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(jupyter.url + "/sluice-gpu/usage", timeout=20)
    assert refused.value.code == 403


def test_usage_is_processor_time_with_ended_children_and_memory_of_ones_own(tmp_path):
    from sluice_gpu._usage import usage

    fields = ["S", *["0"] * 10, "100", "20", "7", "3", *["0"] * 30]
    for pid in ("1", "23"):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "stat").write_text(f"{pid} (a ) b) {' '.join(fields)}\n")
        memory = "RssAnon:\t  100 kB\nRssFile:\t 9000 kB\nRssShmem:\t    4 kB\n"
        (tmp_path / pid / "status").write_text(f"Name:\tx\n{memory}")
    (tmp_path / "24").mkdir()
    (tmp_path / "meminfo").write_text("")
    assert usage(str(tmp_path)) == {"cpuMs": 2 * 130 * 1000 // os.sysconf("SC_CLK_TCK"), "memoryBytes": 2 * 104 * 1024}


def ended(reading, seconds=10):
    """What a reading says once it is over."""
    until = time.monotonic() + seconds
    while reading.told()["state"] == "reading" and time.monotonic() < until:
        time.sleep(0.01)
    return reading.told()


def test_a_dataset_is_read_ahead_and_how_far_is_told(jupyter, tmp_path):
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "one").write_bytes(b"1" * 3_000_000)
    (tmp_path / "data" / "deep" / "two").write_bytes(b"2" * 42)
    (tmp_path / "data" / "link").symlink_to(tmp_path / "data" / "one")
    asked = {"folder": str(tmp_path / "data")}
    told = jupyter("POST", "/sluice-gpu/datasets?no_track_activity=1", asked)
    until = time.monotonic() + 10
    while told["state"] == "reading" and time.monotonic() < until:
        told = jupyter("POST", "/sluice-gpu/datasets?no_track_activity=1", asked)
    assert told == {"state": "done", "bytes": 3_000_042, "totalBytes": 3_000_042, "lacks": None}
    gone = jupyter("POST", "/sluice-gpu/datasets", {"folder": str(tmp_path / "gone")})
    while gone["state"] == "reading" and time.monotonic() < until:
        gone = jupyter("POST", "/sluice-gpu/datasets", {"folder": str(tmp_path / "gone")})
    assert gone["state"] == "missing"
    for wrong in ({"folder": "data"}, {}):
        with pytest.raises(urllib.error.HTTPError) as refused:
            jupyter("POST", "/sluice-gpu/datasets", wrong)
        assert refused.value.code == 400
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(jupyter.url + "/sluice-gpu/datasets", data=b"{}", timeout=20)
    assert refused.value.code == 403


def test_no_more_of_a_dataset_is_read_than_half_of_what_is_free(tmp_path):
    from sluice_gpu._datasets import Reading, free_memory

    (tmp_path / "one").write_bytes(b"1" * 5 * 2**20)
    part = ended(Reading(str(tmp_path), free=lambda: 4 * 2**20))
    assert part == {"state": "partly", "bytes": 2 * 2**20, "totalBytes": 5 * 2**20, "lacks": "memory"}
    (tmp_path / "meminfo").write_text("MemTotal:  9 kB\nMemAvailable:    4096 kB\n")
    at = {"meminfo": str(tmp_path / "meminfo"), "cgroup": str(tmp_path)}
    assert free_memory(**at) == 4 * 2**20
    (tmp_path / "memory.current").write_text("1000000\n")
    for most, free in (("max", 4 * 2**20), ("3000000", 2_000_000), ("900000", 0)):
        (tmp_path / "memory.max").write_text(f"{most}\n")
        assert free_memory(**at) == free


def test_reading_ahead_ends_when_nobody_asks_for_it(tmp_path, monkeypatch):
    from sluice_gpu import _datasets

    monkeypatch.setattr(_datasets, "_PATIENCE_SECONDS", -1.0)
    (tmp_path / "one").write_bytes(b"1" * 2**20)
    reading = _datasets.Reading(str(tmp_path))
    assert ended(reading)["state"] == "unwanted"
    assert reading.gave_up()
