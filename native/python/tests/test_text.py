"""The sentences of the magics, as values."""

import datetime
import json
import pathlib
import re

import pytest

from sluice_gpu import _text

LEASE = {
    "id": "lea-1",
    "gpuType": "soft",
    "milli": 500,
    "memoryBytes": 4 << 30,
    "deviceName": "soft-0",
    "gpuId": "gpu-1",
    "serverId": "gsv-1",
    "serverName": "gpu-1",
    "borrowed": False,
    "grantedAt": "2026-11-21T14:30:00.000Z",
    "expiresAt": "2026-11-21T15:30:00.000Z",
}
STATUS = {
    "workspace": {"id": "ws-1", "name": "one", "defaultAmount": "0.5", "defaultMilli": 500, "gpuType": "soft", "gpuPolicy": "ask"},
    "team": {
        "name": "vision",
        "quotas": [{"gpuType": "soft", "guaranteedMilli": 500, "limitMilli": 1000, "usedMilli": 500}],
    },
    "free": [
        {"gpuType": "soft", "grantedAtOnceMilli": 500, "freeMilli": 1500},
        {"gpuType": "h200", "grantedAtOnceMilli": 0, "freeMilli": 250},
    ],
    "leases": [],
}
QUEUED = {
    "state": "queued",
    "requestId": "r",
    "position": 1,
    "of": 1,
    "milli": 500,
    "gpuType": "soft",
    "waitedSeconds": 14.2,
    "likelySeconds": 840,
    "reason": {
        "rule": "team-limit",
        "message": "team vision is at its limit (1.0 of 1.0 soft)",
        "hint": "run %gpu detach in kmeans.ipynb",
        "holders": [
            {"amount": "0.5", "who": "you", "label": "kmeans.ipynb (idle 6 min)"},
            {"amount": "0.5", "who": "Ada"},
        ],
    },
}
NOW = datetime.datetime(2026, 11, 21, 14, 42, tzinfo=datetime.timezone.utc)


@pytest.fixture(autouse=True)
def utc(monkeypatch):
    """Clock times are shown in the reader's zone; here that is UTC."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(("milli", "text"), [(500, "0.5"), (250, "0.25"), (1000, "1"), (2000, "2"), (125, "0.125")])
def test_amounts_read_as_they_are_typed(milli, text):
    assert _text.amount(milli) == text


def test_quotas_keep_one_decimal():
    assert [_text.quota(milli) for milli in (0, 500, 1000, 1250)] == ["0.0", "0.5", "1.0", "1.25"]


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (2048, "2.0 KiB"), (64 << 20, "64.0 MiB"), (4 << 30, "4.0 GiB"), (1 << 52, "4096.0 TiB")],
)
def test_memory_has_a_unit_that_reads_well(size, text):
    assert _text.memory(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.038, "38 ms"), (2.34, "2.3 s"), (14, "14 s"), (125, "2 min"), (3900, "1 h 05 min"), (0, "0 ms")],
)
def test_durations_use_one_unit(seconds, text):
    assert _text.duration(seconds) == text


def test_places_in_the_queue():
    assert [_text.ordinal(n) for n in (1, 2, 3, 4, 11, 12, 21)] == ["1st", "2nd", "3rd", "4th", "11th", "12th", "21st"]


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("90", 90), ("90s", 90), ("2m", 120), ("2min", 120), ("1h", 3600), ("1h30m", 5400)]
)
def test_lengths_of_time_are_understood(text, seconds):
    assert _text.parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1", "2 weeks", "1.5h"])
def test_other_lengths_of_time_are_refused(text):
    with pytest.raises(_text.UsageProblem, match="no length of time"):
        _text.parse_duration(text)


def test_nothing_typed_asks_for_the_status():
    assert _text.parse_line("") == {"action": "status", "amount": ""}


def test_an_attach_with_every_flag():
    assert _text.parse_line("attach 0.5 --type soft --for 1h --wait=0 --guaranteed --json") == {
        "action": "attach",
        "amount": "0.5",
        "type": "soft",
        "for": 3600,
        "wait": 0,
        "guaranteed": True,
        "json": True,
    }


def test_a_priority_is_one_of_three_words():
    assert _text.parse_line("attach 0.5 --priority high")["priority"] == "high"
    assert _text.parse_cell_line("0.5 --priority=low")["priority"] == "low"
    with pytest.raises(_text.UsageProblem, match="low, normal, high, not 'urgent'"):
        _text.parse_line("attach 0.5 --priority urgent")
    assert _text.complete("attach 0.5 --priority ") == ["low", "normal", "high"]
    assert _text.complete("attach 0.5 --priority h") == ["high"]


def test_memory_is_another_way_to_give_the_amount_or_stands_beside_it():
    assert _text.parse_line("attach --mem 4G") == {"action": "attach", "amount": "4G"}
    assert _text.parse_line("attach --mem 4G 0.5") == {"action": "attach", "amount": "0.5", "mem": "4G"}
    assert _text.parse_line("attach 0.5 --mem 4G") == {"action": "attach", "amount": "0.5", "mem": "4G"}


@pytest.mark.parametrize("typed", ["-0.5", "1.5", "NaN", "0,5", "0"])
def test_odd_amounts_are_left_to_the_broker_which_answers_them(typed):
    assert _text.parse_line(f"attach {typed}")["amount"] == typed


def test_an_extension_takes_a_length_of_time():
    assert _text.parse_line("extend 1h30m") == {"action": "extend", "amount": "", "for": 5400}
    assert _text.parse_line("extend --for 30m") == {"action": "extend", "amount": "", "for": 1800}
    assert _text.parse_line("extend") == {"action": "extend", "amount": ""}
    with pytest.raises(_text.UsageProblem, match="no length of time"):
        _text.parse_line("extend soon")
    assert _text.complete("extend ") == ["1h", "30m", "--json"]
    until = (NOW + datetime.timedelta(hours=1)).isoformat()
    assert _text.extended({"expiresAt": until}, NOW) == (
        "Extended: the time limit is in 1 h 00 min. Without GPU work the idle limit ends it earlier."
    )


def test_the_cell_magic_takes_what_attach_takes():
    assert _text.parse_cell_line("0.25 --wait 0") == {"action": "attach", "amount": "0.25", "wait": 0}


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("atach 0.5", "did you mean attach"),
        ("0.5", "%gpu attach 0.5"),
        ("attach 0.5 --wiat 3", "did you mean --wait"),
        ("attach 0.5 1", "left over"),
        ("attach --wait", "needs a value"),
        ("detach 0.5", "takes no amount"),
        ("detach --type soft", "detach takes no --type"),
        ("free --wait 2m", "free takes no --wait"),
        ("attach 0.5 --wait 25h", "--wait is for 24h at most"),
        ("attach 0.5 --for 0", "longer than 0"),
        ("extend 999h", "168h at most"),
        ("extend 0", "longer than 0"),
        ("attach 0.5 --guaranteed=no", "--guaranteed stands alone"),
        ("resize 1", "%gpu detach, then %gpu attach"),
        ("release", "%gpu detach"),
        ("smi", "!sluice smi"),
        ("on_reclaim", "sluice_gpu.on_reclaim"),
        ("xyzzy", "%gpu help"),
    ],
)
def test_a_slip_is_answered_with_what_would_be_right(line, hint):
    with pytest.raises(_text.UsageProblem) as caught:
        _text.parse_line(line)
    assert hint in str(caught.value)


def test_a_comment_at_the_end_of_a_line_is_none_of_it():
    assert _text.parse_line("attach 0.5    # half a GPU, for this notebook") == {"action": "attach", "amount": "0.5"}
    assert _text.parse_line("# what I have") == {"action": "status", "amount": ""}
    assert _text.parse_cell_line("0.5 --wait 0 # now") == {"action": "attach", "amount": "0.5", "wait": 0}


def test_every_line_that_the_readme_shows_is_understood():
    readme = pathlib.Path(__file__).parents[3].joinpath("README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^ {4}%gpu(.*)$", readme, re.MULTILINE)
    assert len(lines) >= 4
    for line in lines:
        _text.parse_line(line)


def test_completion_knows_actions_and_flags():
    assert _text.complete("at") == ["attach"]
    assert "--wait" in _text.complete("attach 0.5 --")
    assert "0.5" in _text.complete("attach ")
    assert "detach" in _text.complete("")
    assert _text.complete("detach ") == ["--json"]


def test_status_without_a_gpu():
    assert _text.status(STATUS, None, NOW) == (
        "GPU     none attached.  Borrow one: %gpu attach 0.5\n"
        "Team    vision: 0.5 of 1.0 soft in use (0.5 guaranteed)\n"
        "Free    0.5 soft, granted at once.  All types: %gpu free"
    )


@pytest.mark.parametrize(
    ("policy", "says"),
    [("never", "borrows none"), ("first-use", "attaches 0.5 by itself"), ("ask", "Borrow one: %gpu attach 0.5")],
)
def test_status_says_how_the_workspace_comes_to_a_gpu(policy, says):
    workspace = {**STATUS["workspace"], "gpuPolicy": policy}
    assert says in _text.status({**STATUS, "workspace": workspace}, None, NOW).splitlines()[0]


def test_status_names_a_default_that_is_memory_as_it_is_typed():
    workspace = {**STATUS["workspace"], "defaultAmount": "40G", "defaultMilli": 284}
    assert "Borrow one: %gpu attach 40G" in _text.status({**STATUS, "workspace": workspace}, None, NOW)
    assert _text.pill({**STATUS, "workspace": workspace}, NOW)["detail"] == "No GPU borrowed. Borrow one: %gpu attach 40G"


def test_status_says_when_nothing_would_be_granted():
    full = {**STATUS, "free": [{"gpuType": "soft", "grantedAtOnceMilli": 0, "freeMilli": 0}]}
    assert "an attach waits in the queue" in _text.status(full, None, NOW)
    assert "no GPU in the pool" in _text.status({**STATUS, "free": []}, None, NOW)


def test_status_with_a_gpu():
    own = {
        "lease": LEASE,
        "owner": {"kind": "kernel", "pid": 7, "startTime": 9},
        "usedMemoryBytes": int(1.2 * (1 << 30)),
        "gpuTimeUs": 1,
        "computePercent": 38.2,
        "gpuMilliHours": 100,
    }
    assert _text.status(STATUS, own, NOW) == (
        "GPU     0.5 of soft-0 on gpu-1, for 12 min, guaranteed\n"
        "Memory  1.2 of 4.0 GiB      Compute  38 % of your half (last minute)\n"
        "Ends    in 48 min (time limit; %gpu extend 1h)\n"
        "Cost    0.10 GPU-h    Team vision: 0.5 of 1.0 soft in use"
    )


def test_status_says_when_idling_ends_it_and_what_it_costs_so_far():
    own = {
        "lease": LEASE,
        "owner": {"kind": "kernel", "pid": 7, "startTime": 9},
        "usedMemoryBytes": 0,
        "gpuTimeUs": 1,
        "computePercent": 0,
        "gpuMilliHours": 100,
        "costMicro": 214_000,
        "idleEndsAt": "2026-11-21T15:02:00.000Z",
    }
    *_, ends, cost = _text.status({**STATUS, "currency": "EUR"}, own, NOW).splitlines()
    assert ends == "Ends    in 48 min (time limit; %gpu extend 1h), or in 20 min without GPU work (idle limit)"
    assert cost == "Cost    0.10 GPU-h, 0.21 EUR    Team vision: 0.5 of 1.0 soft in use"
    later = {**own, "idleEndsAt": "2026-11-21T15:31:00.000Z", "costMicro": None}
    *_, ends, cost = _text.status({**STATUS, "currency": "EUR"}, later, NOW).splitlines()
    assert ends == "Ends    in 48 min (time limit; %gpu extend 1h)"
    assert cost.startswith("Cost    0.10 GPU-h    Team")


def test_a_kernel_that_runs_long_shows_its_blocks():
    running = {"kernel": "matmul", "blocksDone": 1204, "blocks": 16384}
    owner = {"kind": "kernel", "pid": 7, "startTime": 9, "label": "a.ipynb"}
    entry = {"lease": LEASE, "owner": owner, "running": running}
    own = {**entry, "usedMemoryBytes": 0, "computePercent": 100, "gpuMilliHours": 1}
    assert _text.status(STATUS, own, NOW).splitlines()[2] == "Running kernel matmul: 1,204 of 16,384 blocks"
    shown = _text.pill({**STATUS, "leases": [entry]}, NOW)
    assert shown["text"] == "GPU: 0.5 of soft-0 on gpu-1, time limit in 48 min, kernel matmul: 1,204 of 16,384 blocks"
    assert shown["detail"].endswith("48 min (a.ipynb), kernel matmul: 1,204 of 16,384 blocks")
    assert len(_text.status(STATUS, {**own, "running": None}, NOW).splitlines()) == 4


def test_a_gpu_that_does_not_tell_blocks_shows_the_name_alone():
    assert _text.progress({"kernel": "matmul", "blocksDone": 0, "blocks": 0}) == "kernel matmul"
    assert _text.progress({"kernel": "a graph with matmul", "blocksDone": 0, "blocks": 0}) == "a graph with matmul"


def test_own_lease_is_found_by_the_process_start():
    entry = {"owner": {"kind": "kernel", "pid": 7, "startTime": 9}}
    assert _text.own_lease({"leases": [entry]}, 7, 9) is entry
    assert _text.own_lease({"leases": [entry]}, 7, 10) is None


def test_attached():
    assert _text.attached(LEASE, 0.038) == (
        "Attached 0.5 GPU (soft-0 on gpu-1, 4.0 GiB) in 38 ms.\n"
        "Ends in 1 h 00 min (time limit), or earlier without GPU work (idle limit)."
    )


def two_gpus(second="gpu-1"):
    places = (("soft-0", "gpu-1"), ("soft-1", second))
    each = [{"deviceName": name, "serverName": server, "milli": 1000, "memoryBytes": 8 << 30} for name, server in places]
    return {**LEASE, **each[0], "devices": each}


def test_a_lease_of_several_gpus_names_each_and_sums_them():
    lease = two_gpus()
    assert _text.attached(lease, 0.041) == (
        "Attached 2 GPUs (soft-0 and soft-1 on gpu-1, 8.0 GiB each) in 41 ms.\n"
        "Ends in 1 h 00 min (time limit), or earlier without GPU work (idle limit)."
    )
    assert _text.already_attached(lease).startswith("Already attached: 2 GPUs (soft-0 and soft-1 on gpu-1).")
    assert _text.place(two_gpus("gpu-2")) == "soft-0 on gpu-1, soft-1 on gpu-2"


def test_attached_beyond_the_guaranteed_quota_says_what_may_happen():
    borrowed = {**LEASE, "milli": 1000, "borrowed": True}
    lines = _text.attached(borrowed, 0.038).splitlines()
    assert len(lines) == 3
    assert lines[2].startswith("Borrowed: ")


@pytest.mark.parametrize(("milli", "guaranteed", "advice"), [(1000, 500, "0.5"), (250, 500, "0.25"), (3000, 2500, "2")])
def test_attached_beyond_the_guaranteed_quota_advises_an_amount_that_can_be_guaranteed(milli, guaranteed, advice):
    quotas = [{"gpuType": "h200", "guaranteedNowMilli": 9000}, {"gpuType": "soft", "guaranteedNowMilli": guaranteed}]
    last = _text.attached({**LEASE, "milli": milli, "borrowed": True}, 0.038, quotas).splitlines()[-1]
    assert last == f"Never taken back: %gpu detach, then %gpu attach {advice} --guaranteed"


def test_attached_advises_nothing_where_nothing_is_guaranteed():
    quotas = [{"gpuType": "soft", "guaranteedNowMilli": 0}]
    assert len(_text.attached({**LEASE, "borrowed": True}, 0.038, quotas).splitlines()) == 3


def test_queued():
    assert _text.queued(QUEUED, 14.2, 120) == (
        "Queued  1st of 1 for 0.5 soft.  0:14 of 2:00.  Stop leaves the queue.\n"
        "Why     team vision is at its limit (1.0 of 1.0 soft):\n"
        "        0.5 you, kmeans.ipynb (idle 6 min); 0.5 Ada\n"
        "Likely  in about 14 min\n"
        "Sooner  run %gpu detach in kmeans.ipynb"
    )


def test_refused():
    reason = {
        "rule": "team-limit",
        "message": "team vision may use at most 1.0 soft at once; you asked for 2",
        "gpuType": "soft",
        "fitsNowMilli": 500,
        "largestMilli": 1000,
        "hint": "%gpu attach 0.5 --type soft",
    }
    assert _text.refused(reason) == (
        "team vision may use at most 1.0 soft at once; you asked for 2.\n"
        "  Fits now  %gpu attach 0.5 --type soft        Largest possible  1"
    )
    free = [{"gpuType": "h200", "grantedAtOnceMilli": 1000}, {"gpuType": "a100", "grantedAtOnceMilli": 0}]
    other = {**STATUS, "free": [*free, STATUS["free"][0]]}
    assert _text.refused(reason, None, other).splitlines()[1:] == [
        "  Fits now  %gpu attach 0.5 --type soft        Largest possible  1",
        "            %gpu attach 1 --type h200",
    ]
    # With parked memory a notebook stays with the type that it is on.
    assert _text.refused(reason, None, {**other, "usedBytes": 64}) == _text.refused(reason)
    assert _text.refused({**reason, "fitsNowMilli": 0, "hint": "ask Ada"}, None, other).splitlines()[1:] == [
        "  Fits now  %gpu attach 1 --type h200        Largest possible  1",
        "  Try       ask Ada",
    ]


def test_a_refusal_for_the_limit_leads_to_the_form_that_asks_for_more():
    page = _text.request_page("http://localhost:3000/", STATUS, "2")
    assert page == "http://localhost:3000/teams/vision?more=1"
    assert _text.request_page("http://h", STATUS, "0.5") == "http://h/teams/vision?more=0.5"
    assert _text.request_page("http://h", STATUS, "2", "h200") == "http://h/teams/vision?more=2"
    assert _text.request_page("http://h", STATUS, "40G") is None
    reason = {"rule": "team-limit", "message": "team vision may use at most 1.0 soft at once; you asked for 2"}
    assert _text.refused(reason, page).endswith(f"\n  More      ask your team lead: {page}")


def test_not_granted_says_why_and_how_to_wait_longer():
    text = _text.not_granted("0.5 soft", QUEUED["reason"], 120, "0.5")
    assert text.startswith("0.5 soft did not become free within 2:00; left the queue.")
    assert "team vision is at its limit" in text
    assert text.endswith("Wait on   %gpu attach 0.5 --wait 10m")


def test_who_took_a_request_out_of_the_queue_is_named():
    reason = {"rule": "taken-out", "message": "Ada took it out of the queue"}
    assert _text.taken_out("0.5 soft", reason) == "0.5 soft left the queue: Ada took it out of the queue."


def test_why_marks_the_rule_that_decides():
    text = _text.why(QUEUED, STATUS, "0.5 soft", 180)
    assert text.splitlines()[0] == "0.5 soft, team vision, queued 3 min, 1st of 1"
    assert "  HERE  team limit    team vision is at its limit (1.0 of 1.0 soft)" in text
    free_device = {
        **QUEUED,
        "reason": {
            **{"rule": "free-device", "message": "largest free piece: 0.25", "fitsNowMilli": 250, "gpuType": "soft"},
            "hint": "%gpu attach 0.25 --type soft",
        },
    }
    h200 = {"gpuType": "h200", "grantedAtOnceMilli": 2000, "freeMilli": 2000}
    text = _text.why(free_device, {**STATUS, "free": [STATUS["free"][0], h200]}, "0.5 soft", 180)
    assert "  ok    team limit    0.5 of 1.0 in use" in text
    assert "  HERE  free device   largest free piece: 0.25" in text
    assert "  Now   %gpu attach 0.25 --type soft\n        %gpu attach 2 --type h200\n" in text + "\n"
    assert "Try" not in text


def test_why_has_a_line_for_every_rule_of_the_contract():
    schema = pathlib.Path(__file__).parents[2] / "schemas" / "lease.json"
    rules = json.loads(schema.read_text())["$defs"]["LeaseReason"]["properties"]["rule"]["enum"]
    for rule in rules:
        text = _text.why({**QUEUED, "reason": {"rule": rule, "message": "because"}}, STATUS, "0.5 soft", 180)
        assert re.search(r"^  HERE  .*because$", text, re.MULTILINE), rule


def test_giving_back_tells_what_is_parked():
    assert _text.given_back({"milli": 500, "parkedBytes": 0, "heldSeconds": 730}) == (
        "Gave back 0.5 GPU after 12 min. The notebook goes on without it."
    )
    assert _text.given_back({"milli": 500, "parkedBytes": 64 << 20, "heldSeconds": 730}) == (
        "Gave back 0.5 GPU after 12 min. Parked 64.0 MiB: the next %gpu attach finds your arrays as they are."
    )
    lost = {"milli": 500, "parkedBytes": 0, "lostBytes": 64 << 20, "heldSeconds": 730}
    assert _text.given_back(lost) == (
        "Gave back 0.5 GPU after 12 min. 64.0 MiB in its memory could not be kept: "
        "make your arrays again when you next attach."
    )
    part = {"milli": 2000, "parkedBytes": 64 << 20, "lostBytes": 8 << 20, "heldSeconds": 730}
    assert _text.given_back(part) == (
        "Gave back 2 GPU after 12 min. Parked 64.0 MiB: an attach that gets the same GPU finds those arrays as they "
        "are. 8.0 MiB elsewhere could not be kept: make those arrays again."
    )


def test_an_estimate_names_both_limits_of_a_busy_lease():
    working = {**QUEUED, "likelySeconds": 14_340, "soonestSeconds": 1140}
    assert "Likely  in 19 min (idle limit) to 3 h 59 min (time limit)" in _text.queued(working, 1, 60)
    assert "When  in 19 min (idle limit) to 3 h 59 min (time limit)" in _text.why(working, STATUS, "0.5 soft", 1)


def test_free_lists_every_type():
    assert _text.free(STATUS) == (
        "Type   Granted at once   Free   Team's limit\n"
        "soft   0.5               1.5    1.0\n"
        "h200   0                 0.25   none"
    )


def test_the_status_bar_item_names_what_is_borrowed():
    entry = {"lease": LEASE, "owner": {"kind": "kernel", "pid": 7, "startTime": 9, "label": "kmeans.ipynb"}}
    assert _text.pill(STATUS, NOW)["text"] == "GPU: none"
    assert _text.pill({**STATUS, "leases": [entry]}, NOW) == {
        "text": "GPU: 0.5 of soft-0 on gpu-1, time limit in 48 min",
        "detail": "0.5 of soft-0 on gpu-1, time limit in 48 min (kmeans.ipynb)",
    }
    idle = _text.pill({**STATUS, "leases": [{**entry, "idleEndsAt": "2026-11-21T15:02:00.000Z"}]}, NOW)
    assert idle["text"] == "GPU: 0.5 of soft-0 on gpu-1, idle limit in 20 min, time limit in 48 min"
    two = _text.pill({**STATUS, "leases": [entry, entry]}, NOW)
    assert two["text"] == "GPU: 1 in 2 notebooks"
    assert two["detail"].count("\n") == 1


def test_the_status_bar_item_shows_waiting_requests_and_idle_leases():
    note = {"position": 1, "of": 2, "milli": 500, "gpuType": "soft", "kernelId": "k-1"}
    assert _text.pill(STATUS, NOW, [note]) == {
        "text": "GPU: waiting, 1st of 2 for 0.5 soft",
        "detail": "Waiting, 1st of 2 for 0.5 soft",
    }
    owner = {"kind": "kernel", "kernelId": "k-2", "pid": 7, "startTime": 9, "label": "kmeans.ipynb"}
    entry = {"lease": LEASE, "owner": owner, "usedMemoryBytes": 2**30, "computePercent": 0, "idleEndsAt": None}
    idle = {**entry, "idleEndsAt": (NOW + datetime.timedelta(minutes=12)).isoformat()}
    assert _text.gpu_state(entry) == "attached"
    assert _text.gpu_state(idle) == "idle"
    assert _text.gpu_state({**idle, "computePercent": 38}) == "attached"
    shown = _text.pill({**STATUS, "leases": [idle]}, NOW, [note])
    assert shown["text"] == "GPU: 0.5 of soft-0 on gpu-1, idle, idle limit in 12 min, time limit in 48 min"
    assert shown["detail"].splitlines()[1] == "Waiting, 1st of 2 for 0.5 soft"


def test_a_lease_that_will_be_taken_back_says_so_everywhere():
    notice = {"at": "2026-11-21T14:41:00Z", "finishAt": "2026-11-21T14:43:30Z", "releaseAt": "2026-11-21T14:44:00Z"}
    lease = {**LEASE, "notice": notice}
    owner = {"kind": "kernel", "pid": 7, "startTime": 9}
    entry = {"lease": lease, "owner": owner, "usedMemoryBytes": 0, "computePercent": 0, "gpuMilliHours": 1}
    assert _text.pill({**STATUS, "leases": [entry]}, NOW)["text"] == "GPU: 0.5 of soft-0 on gpu-1, taken back in 2 min"
    assert "Ends    taken back in 2 min for another team" in _text.status(STATUS, entry, NOW)
    leaving = {**notice, "why": "update"}
    shown = _text.status(STATUS, {**entry, "lease": {**lease, "notice": leaving}}, NOW)
    assert "Ends    taken back in 2 min with its server; the notebook lives on" in shown
    assert _text.taken_back_soon({"notice": leaving, "forTeam": None}, NOW) == (
        "GPU: taken back in 2 min: its server goes out of service. "
        "The notebook lives on; save what is in GPU memory, it is lost then."
    )


def test_a_failed_call_is_one_sentence_with_a_name():
    assert _text.failed_call("this notebook has no GPU. Run %gpu attach 0.5, then this cell again.") == (
        "NoGpuAttached: this notebook has no GPU. Run %gpu attach 0.5, then this cell again.\n  Nothing was lost."
    )
    assert _text.failed_call("Your GPU was taken back.") == "GpuLost: Your GPU was taken back."
    gone = "This GPU was given back. Run %gpu attach to borrow one again."
    assert _text.failed_call(gone).startswith("NoGpuAttached: ")
    # Another may be attached by now.
    assert _text.failed_call(f"{gone} This array lay on that GPU").startswith("GpuLost: ")
    assert _text.failed_call("PTX line 3: no `tex.1d`", "program") == "GpuError: PTX line 3: no `tex.1d`"


def test_attaching_twice_changes_nothing_and_says_so():
    assert _text.already_attached(LEASE).startswith("Already attached: 0.5 GPU (soft-0 on gpu-1).")


TRACED = {
    "on": False,
    "blocking": 3,
    "posted": 240,
    "calls": [
        {"function": "cuMemAlloc_v2", "operation": "MemAlloc", "blocking": False, "site": 0, "count": 240, "bytes": 3840}
        | {"waitedUs": 0.0},
        {"function": "cuMemcpyDtoH_v2", "operation": "CopyFromDevice", "blocking": True, "site": 1, "count": 2}
        | {"bytes": 1 << 20, "waitedUs": 1500.4},
        {"function": "cuCtxSynchronize", "operation": "ContextSynchronize", "blocking": True, "site": 0, "count": 1}
        | {"bytes": 0, "waitedUs": 80.0},
    ],
}


def test_a_trace_names_the_lines_that_wait_the_longest_first():
    assert _text.trace(TRACED, {1: ("In[5] line 3", "out.copy_to_host()")}) == (
        "3 blocking round trips, 1.6 ms waited; 240 calls sent without waiting; 1.0 MiB in all.\n"
        "Times   Waited   Function           For                  Line\n"
        "    2   1.5 ms   cuMemcpyDtoH_v2    CopyFromDevice       In[5] line 3: out.copy_to_host()\n"
        "    1    80 us   cuCtxSynchronize   ContextSynchronize   (not Python)"
    )
    nothing = {"on": False, "blocking": 0, "posted": 1, "calls": []}
    assert _text.trace(nothing, {}) == (
        "0 blocking round trips, 0 us waited; 1 call sent without waiting; 0 B in all."
    )


def test_logs_have_a_time_of_day_with_its_zone_a_line():
    assert _text.logs([{"at": 1.5, "text": "attached: soft-0"}]) == "00:00:01 UTC  attached: soft-0"
    assert _text.logs([]) == "Nothing has happened to this notebook's GPU yet."


def test_trace_takes_on_and_off():
    assert _text.parse_line("trace off")["word"] == "off"
    assert _text.complete("trace o") == ["on", "off"]
    with pytest.raises(_text.UsageProblem, match="did you mean off"):
        _text.parse_line("trace of")


def test_a_lease_of_the_workspace_is_every_notebooks_own():
    entry = {"owner": {"kind": "workspace", "pid": 1, "startTime": 2}}
    own = {"owner": {"kind": "kernel", "pid": 7, "startTime": 9}}
    assert _text.own_lease({"leases": [entry]}, 7, 9) is entry
    assert _text.own_lease({"leases": [entry, own]}, 7, 9) is own
    assert _text.parse_line("attach 0.5 --workspace")["workspace"] is True


def test_the_panel_offers_the_teams_types_and_lists_what_was_borrowed():
    status = {
        "workspace": {"id": "ws", "name": "w", "defaultAmount": "2G", "defaultMilli": 250, "gpuType": "soft", "gpuPolicy": "ask"},
        "team": {
            "name": "vision",
            "quotas": [
                {"gpuType": "h200", "guaranteedMilli": 0, "limitMilli": 1000, "usedMilli": 0},
                {"gpuType": "soft", "guaranteedMilli": 500, "limitMilli": 4000, "usedMilli": 0},
            ],
        },
        "free": [{"gpuType": "soft", "grantedAtOnceMilli": 750, "freeMilli": 1000}],
        "leases": [],
    }
    lease = {
        **{"id": "lea-1", "gpuType": "soft", "milli": 500, "owner": {"kind": "kernel"}},
        **{"grantedAt": "2026-11-22T15:00:00.000Z", "endedAt": None, "endReason": None},
    }
    shown = _text.panel(status, [lease])
    # The workspace's own type is the first choice.
    assert [row["gpuType"] for row in shown["types"]] == ["soft", "h200"]
    assert [(row["mostMilli"], row["atOnceMilli"]) for row in shown["types"]] == [(4000, 750), (1000, 0)]
    assert shown["default"] == {"gpuType": "soft", "typed": "2G", "milli": 250}
    assert (shown["workspace"], shown["policy"], shown["held"], shown["waiting"]) == ("w", "ask", [], [])
    entry = {
        **{"lease": LEASE, "owner": {"kind": "kernel", "kernelId": "k-2", "pid": 7, "startTime": 9}},
        **{"usedMemoryBytes": 2**30, "computePercent": 38.5, "idleEndsAt": None},
    }
    note = {"position": 1, "of": 1, "milli": 500, "gpuType": "soft", "kernelId": "k-1"}
    busy = _text.panel({**status, "leases": [entry]}, [], [note])
    assert busy["waiting"] == [{"kernelId": "k-1", "place": "1st of 1 for 0.5 soft"}]
    assert busy["held"] == [
        {
            **{"state": "attached", "name": "0.5 of soft-0 on gpu-1", "label": "", "kernelId": "k-2", "isWorkspaces": False},
            **{"usedBytes": 2**30, "memoryBytes": LEASE["memoryBytes"], "computePercent": 38.5},
        }
    ]
    assert shown["history"] == [
        {"id": "lea-1", "amount": "0.5 soft", "label": "", "from": "2026-11-22T15:00:00.000Z", "to": None, "end": ""}
    ]


def test_the_team_line_says_what_is_guaranteed_now():
    def line(**row):
        team = {"name": "vision", "quotas": [{**STATUS["team"]["quotas"][0], "guaranteedMilli": 1000, **row}]}
        return _text.status({**STATUS, "team": team}, None, NOW).splitlines()[1]

    assert line().endswith("(1.0 guaranteed)")
    assert line(guaranteedNowMilli=1000).endswith("(1.0 guaranteed)")
    assert line(guaranteedNowMilli=500).endswith("(0.5 of 1.0 guaranteed now)")
    assert line(guaranteedNowMilli=1500).endswith("(1.5 guaranteed now)")
