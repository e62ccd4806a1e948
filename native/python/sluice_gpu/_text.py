"""What people read: pure functions from the broker's answers to text, and from what was typed to a request.

Nothing here does I/O or reads the clock, so every sentence is tested as a value.
Amounts come in thousandths of a GPU, memory in bytes, times in seconds or as ISO 8601 in UTC.
"""

import datetime
import re

USAGE = """\
%gpu                   what this notebook has, what is free, the team's quota
%gpu attach 0.5        borrow half a GPU for this notebook (2 = two GPUs, 4G = by GPU memory)
%gpu detach            give it back; arrays stay parked and come back with the next attach
%gpu extend 1h         keep it for an hour longer
%gpu why               why the last attach waited or was refused
%gpu free              what each GPU type has free
%gpu cancel            leave the queue
%gpu trace             what the last cell waited for, line by line (trace off ends it)
%gpu logs              what happened to this notebook's GPU
%%gpu 0.5              borrow for one cell only
Flags of attach: --type soft  --mem 4G  --for 1h  --wait 2m (0 = now or not at all)  --guaranteed
                 --workspace (all notebooks of the workspace use it)
                 --priority low|normal|high (your place among your team's requests)
--json with any of them prints the answer for programs"""

ACTIONS = ("attach", "detach", "extend", "cancel", "free", "why", "trace", "logs", "status", "help")

# What people of other tools type, and what it is here.
_OTHER_WORDS = {
    **dict.fromkeys(("borrow", "request", "get", "start", "acquire"), "to borrow one, write %gpu attach 0.5"),
    **dict.fromkeys(("release", "return", "give", "drop", "stop", "end"), "to give it back, write %gpu detach"),
    **dict.fromkeys(
        ("resize", "scale", "change", "set"),
        "for another amount, %gpu detach, then %gpu attach with it: device arrays are kept",
    ),
    **dict.fromkeys(("smi", "nvidia-smi", "top"), "write !sluice smi, or !nvidia-smi"),
    **dict.fromkeys(("queue", "wait", "explain"), "%gpu why says why an attach waited"),
    **dict.fromkeys(("list", "ls", "ps", "info", "show"), "%gpu alone shows what you have"),
    "log": "did you mean logs?",
    "on_reclaim": "it is Python: sluice_gpu.on_reclaim(save) calls save() before a GPU is taken back",
}

# The word that may follow an action, other than an amount.
WORDS = {"trace": ("on", "off")}

# name of the flag -> whether a value follows
FLAGS = {
    "--mem": True,
    "--type": True,
    "--for": True,
    "--wait": True,
    "--priority": True,
    "--guaranteed": False,
    "--workspace": False,
    "--json": False,
}

# A request's place among its team's: a higher one comes first, whoever asked before.
PRIORITIES = ("low", "normal", "high")

DEFAULT_WAIT_SECONDS = 120
EXTEND_SECONDS = 3600
# What the broker takes at most.
MAX_WAIT_SECONDS = 24 * 3600
MAX_LEASE_SECONDS = 7 * 24 * 3600


class UsageProblem(ValueError):
    """What was typed cannot be understood; the message says what would be."""


def amount(milli):
    """An amount as people type it: 500 -> '0.5', 2000 -> '2'."""
    return f"{milli / 1000:.3f}".rstrip("0").rstrip(".")


def quota(milli):
    """An amount beside others in a sum, always with a decimal: 1000 -> '1.0'."""
    text = amount(milli)
    return text if "." in text else text + ".0"


def memory(size):
    """Bytes in the unit that reads best: '4.0 GiB', '64.0 MiB', '512 B'."""
    if size < 1024:
        return f"{int(size)} B"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        size /= 1024
        if size < 1000 or unit == "TiB":
            return f"{size:.1f} {unit}"
    raise AssertionError("unreachable")


def duration(seconds):
    """A length of time in one unit: '38 ms', '14 s', '12 min', '1 h 05 min'."""
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))} ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{int(seconds)} s"
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def clock(seconds):
    """A running time as a stopwatch shows it: '0:14', '2:00'."""
    seconds = max(0, int(seconds))
    if seconds >= 3600:
        return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{seconds // 60}:{seconds % 60:02d}"


def ordinal(number):
    """1 -> '1st', 12 -> '12th'."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}" + {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def instant(text):
    """ISO 8601 in UTC as the API writes it -> an aware datetime."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def part(milli):
    """What a person calls the amount: 'half', 'quarter', 'GPU', 'part'."""
    if milli == 1000:
        return "GPU"
    if milli > 1000:
        return "GPUs"
    return {500: "half", 250: "quarter", 750: "three quarters"}.get(milli, "part")


def parse_duration(text):
    """Seconds from '90', '90s', '2m', '2min', '1h', '1h30m'."""
    if re.fullmatch(r"\d+", text):
        return int(text)
    match = re.fullmatch(r"(?:(\d+)\s*h)?\s*(?:(\d+)\s*m(?:in)?)?\s*(?:(\d+)\s*s)?", text)
    if not text or match is None:
        raise UsageProblem(f"'{text}' is no length of time; write 90s, 2m or 1h30m")
    hours, minutes, seconds = (int(group or 0) for group in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def _words(line):
    """What stands on a line, without the comment at its end: examples are copied as they are printed."""
    return re.sub(r"(?:^|\s)#.*", "", line).split()


def parse_line(line, actions=ACTIONS):
    """What `%gpu LINE` asks for: `{"action", "amount", and the flags that were given}`."""
    words = _words(line)
    request = {"action": "status", "amount": ""}
    if words and not words[0].startswith("-"):
        word = words.pop(0)
        if word not in actions:
            raise UsageProblem(_unknown(word, actions))
        request["action"] = word
    return _parse_rest(words, request)


def parse_cell_line(line):
    """What `%%gpu LINE` asks for: an attach with the same amount and flags."""
    return _parse_rest(_words(line), {"action": "attach", "amount": ""})


def _parse_rest(words, request):
    words = list(words)
    while words:
        word = words.pop(0)
        if word in ("-h", "--help"):
            request["action"] = "help"
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            if name not in FLAGS:
                raise UsageProblem(_unknown(name, tuple(FLAGS)))
            if name not in _flags_of(request["action"]):
                raise UsageProblem(f"{request['action']} takes no {name}")
            if FLAGS[name]:
                if not equals:
                    if not words:
                        raise UsageProblem(f"{name} needs a value")
                    value = words.pop(0)
                request[name[2:]] = _value_of(name, value)
            elif equals:
                raise UsageProblem(f"{name} stands alone; write it or leave it out")
            else:
                request[name[2:]] = True
        elif request["action"] == "extend" and "for" not in request:
            request["for"] = _lease_length(word)
        elif request["action"] in WORDS:
            if word not in WORDS[request["action"]]:
                raise UsageProblem(_unknown(word, WORDS[request["action"]]))
            request["word"] = word
        elif request["amount"]:
            raise UsageProblem(f"one amount is enough; '{word}' is left over")
        else:
            request["amount"] = word
    if request["action"] == "attach" and "mem" in request and not request["amount"]:
        request["amount"] = request.pop("mem")
    elif request["action"] not in ("attach", "help") and request["amount"]:
        raise UsageProblem(f"{request['action']} takes no amount")
    return request


def _flags_of(action):
    """The flags that an action takes."""
    return tuple(FLAGS) if action == "attach" else {"extend": ("--for", "--json"), "help": ()}.get(action, ("--json",))


def _value_of(flag, text):
    if flag == "--wait":
        return _at_most(MAX_WAIT_SECONDS, parse_duration(text), flag)
    if flag == "--for":
        return _lease_length(text)
    if flag == "--priority" and text not in PRIORITIES:
        raise UsageProblem(f"--priority is one of {', '.join(PRIORITIES)}, not '{text}'")
    return text


def _lease_length(text):
    seconds = parse_duration(text)
    if seconds == 0:
        raise UsageProblem("a GPU is lent for longer than 0; write 90s, 2m or 1h30m")
    return _at_most(MAX_LEASE_SECONDS, seconds, "a GPU")


def _at_most(most, seconds, what):
    if seconds > most:
        raise UsageProblem(f"{what} is for {most // 3600}h at most")
    return seconds


def _unknown(word, known):
    import difflib

    if re.fullmatch(r"[-+]?[\d.,]+[GMgm]?", word):
        return f"to borrow one, write %gpu attach {word}"
    if word in _OTHER_WORDS and known is ACTIONS:
        return f"'{word}' is not known; {_OTHER_WORDS[word]}"
    close = difflib.get_close_matches(word, known, n=1)
    hint = f"did you mean {close[0]}?" if close else "%gpu help lists what there is"
    return f"'{word}' is not known; {hint}"


def complete(line):
    """What could stand next on a `%gpu` line; `line` is everything before the cursor, without `%gpu`."""
    words = line.split()
    typing = words[-1] if words and not line.endswith(" ") else ""
    before = words[:-1] if typing else words
    if not before:
        return [word for word in (*ACTIONS, "--json") if word.startswith(typing)]
    if before[0] != "attach":
        words = {**WORDS, "extend": ("1h", "30m")}.get(before[0], ()) if len(before) == 1 else ()
        return [word for word in (*words, "--json") if word.startswith(typing)]
    if before[-1] == "--priority":
        return [word for word in PRIORITIES if word.startswith(typing)]
    if typing.startswith("-"):
        return [flag for flag in FLAGS if flag.startswith(typing)]
    return [word for word in ("0.25", "0.5", "1", *FLAGS) if word.startswith(typing)]


def devices(lease):
    """The GPUs of a lease, in the order of their ordinals; a lease of one is its own entry."""
    return lease.get("devices") or [lease]


def lease_milli(lease):
    """What a lease has in all, thousandths of a GPU."""
    return sum(device["milli"] for device in devices(lease))


def place(lease):
    """Where a lease is: 'soft-0 on gpu-1', of several GPUs 'soft-0 and soft-1 on gpu-1'."""
    servers = {}
    for device in devices(lease):
        servers.setdefault(device["serverName"], []).append(device["deviceName"])
    return ", ".join(f"{' and '.join(names)} on {server}" for server, names in servers.items())


def attached(lease, seconds, quotas=()):
    """The answer to a granted attach that took `seconds`; `quotas` are the team's, for a lease that is borrowed."""
    length = (instant(lease["expiresAt"]) - instant(lease["grantedAt"])).total_seconds()
    size = amount(lease_milli(lease))
    several = len(devices(lease)) > 1
    lines = [
        f"Attached {size} GPU{'s' if several else ''} ({place(lease)}, {memory(lease['memoryBytes'])}"
        f"{' each' if several else ''}) in {duration(seconds)}.",
        f"Ends in {duration(length)} (time limit), or earlier without GPU work (idle limit).",
    ]
    if lease["borrowed"]:
        lines.append("Borrowed: a team within its guaranteed quota may take it back.")
        kept = next((row.get("guaranteedNowMilli", 0) for row in quotas if row["gpuType"] == lease["gpuType"]), 0)
        # Above one GPU only whole ones can be had.
        kept = min(kept if kept < 1000 else kept - kept % 1000, lease_milli(lease))
        if kept:
            lines.append(f"Never taken back: %gpu detach, then %gpu attach {amount(kept)} --guaranteed")
    return "\n".join(lines)


def already_attached(lease):
    """The answer to an attach of a notebook that has a GPU."""
    return (
        f"Already attached: {amount(lease_milli(lease))} GPU{'s' if len(devices(lease)) > 1 else ''} ({place(lease)}). "
        "For another amount, %gpu detach first."
    )


def folded(lines):
    """The lines of a traceback without the frames inside libraries.

    `lines` are IPython's, one for each frame; `%tb` shows them all.
    """
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
    frames = [index for index, line in enumerate(plain) if re.match(r"File \S*/lib/python3[^/]*/", line)]
    if not frames:
        return lines
    note = f"{len(frames)} {'frame' if len(frames) == 1 else 'frames'} inside libraries folded. Show all: %tb"
    kept = [note if index == frames[-1] else line for index, line in enumerate(lines)]
    return [line for index, line in enumerate(kept) if index not in frames[:-1]]


def failed_call(message, kind="lease"):
    """The lines under a cell whose CUDA call failed; `message` is the client's sentence.

    `kind` is "lease" when there was none or it was lost, "program" when the program asked for what the device
    cannot do.
    """
    if kind == "program":
        return f"GpuError: {message}"
    if message.startswith("this notebook has no GPU"):
        return f"NoGpuAttached: {message}\n  Nothing was lost."
    given_back = message.startswith("This GPU was given back") and "This array lay on" not in message
    name = "NoGpuAttached" if given_back else "GpuLost"
    return f"{name}: {message}"


def taken_back_soon(answer, now):
    """The line when a lease is about to be taken back; `answer` is the broker's notice, `now` an aware datetime."""
    left = max(0, (instant(answer["notice"]["releaseAt"]) - now).total_seconds())
    if answer["notice"].get("why") == "update":
        return (
            f"GPU: taken back in {duration(left)}: its server goes out of service. "
            "The notebook lives on; save what is in GPU memory, it is lost then."
        )
    whose = f"team {answer['forTeam']} needs what is guaranteed to it" if answer.get("forTeam") else "another team needs it"
    kept = f" {memory(answer['usedMemoryBytes'])} in its memory is kept." if answer.get("usedMemoryBytes") else ""
    return f"GPU: taken back in {duration(left)}: {whose}. The notebook lives on.{kept}"


def finish_now(answer, now):
    """The line when the rest of a notice is for finishing; see `taken_back_soon`."""
    left = max(0, (instant(answer["notice"]["releaseAt"]) - now).total_seconds())
    return f"GPU: taken back in {duration(left)}. Let what runs come to its end, and start nothing long."


def may_stay():
    """The line when a lease is not taken back after all."""
    return "GPU: it stays yours, nobody needs it back any more."


def idles(answer, now):
    """The line when a lease soon ends for want of GPU work."""
    left = max(0, (instant(answer["idleEndsAt"]) - now).total_seconds())
    kept = f" {memory(answer['usedMemoryBytes'])} in its memory is kept." if answer.get("usedMemoryBytes") else ""
    return f"GPU: no work for a while, so it is given back in {duration(left)}. The notebook lives on.{kept}"


def given_back(answer):
    """The answer to a detach."""
    size = f"{amount(answer['milli'])} GPU" if answer.get("milli") else "the GPU"
    held = answer.get("heldSeconds")
    line = f"Gave back {size}" + (f" after {duration(held)}." if held is not None else ".")
    parked, lost = answer.get("parkedBytes") or 0, answer.get("lostBytes") or 0
    if parked and lost:
        line = f"{line} Parked {memory(parked)}: an attach that gets the same GPU finds those arrays as they are."
        return f"{line} {memory(lost)} elsewhere could not be kept: make those arrays again."
    if parked:
        return f"{line} Parked {memory(parked)}: the next %gpu attach finds your arrays as they are."
    if lost:
        return f"{line} {memory(lost)} in its memory could not be kept: make your arrays again when you next attach."
    return f"{line} The notebook goes on without it."


def extended(answer, now):
    """The answer to an extension; `now` is an aware datetime."""
    left = (instant(answer["expiresAt"]) - now).total_seconds()
    return f"Extended: the time limit is in {duration(left)}. Without GPU work the idle limit ends it earlier."


def nothing_to_extend():
    """The answer to an extension without a lease."""
    return "Nothing to extend: this notebook has no GPU. Borrow one: %gpu attach"


def nothing_to_give_back():
    """The answer to a detach without a lease."""
    return "Nothing to give back: this notebook has no GPU."


def progress(running):
    """How far a kernel has come: 'kernel matmul: 1,204 of 16,384 blocks', 'kernel matmul' where the GPU does not tell;
    None when none runs long."""
    if not running:
        return None
    # "a graph with matmul" is no kernel's name.
    what = running["kernel"] if " " in running["kernel"] else f"kernel {running['kernel']}"
    return f"{what}: {running['blocksDone']:,} of {running['blocks']:,} blocks" if running["blocks"] else what


def _quota_line(status, gpu_type):
    team = status["team"]
    rows = [row for row in team["quotas"] if row["gpuType"] == gpu_type] or team["quotas"]
    if not rows:
        return f"{team['name']} has no GPU quota. Ask an admin to give it one."
    return "; ".join(
        f"{team['name']}: {quota(row['usedMilli'])} of {quota(row['limitMilli'])} {row['gpuType']} in use "
        f"({_guaranteed(row)})"
        for row in rows[:1]
    )


def _guaranteed(row):
    """'1.0 guaranteed', '0.5 of 1.0 guaranteed now' while servers are away; brokers of before do not tell."""
    whole = row["guaranteedMilli"]
    now = row.get("guaranteedNowMilli", whole)
    if now == whole:
        return f"{quota(whole)} guaranteed"
    return f"{quota(now)} of {quota(whole)} guaranteed now" if now < whole else f"{quota(now)} guaranteed now"


def own_lease(status, pid, start_time):
    """This process's entry in the status, else the whole workspace's, or None."""
    entries = status.get("leases", ())
    for entry in entries:
        owner = entry["owner"]
        if owner["pid"] == pid and owner["startTime"] == start_time:
            return entry
    return next((entry for entry in entries if entry["owner"].get("kind") == "workspace"), None)


def _way_to_one(workspace):
    size = workspace["defaultAmount"]
    policy = workspace["gpuPolicy"]
    if policy == "never":
        return "This workspace borrows none (GPU policy: never)"
    if policy == "first-use":
        return f"The first GPU work attaches {size} by itself, or now: %gpu attach {size}"
    return f"Borrow one: %gpu attach {size}"


def status(answer, own, now):
    """What `%gpu` shows. `own` is this process's entry of `answer['leases']` or None, `now` an aware datetime."""
    gpu_type = answer["workspace"]["gpuType"]
    if own is None:
        return "\n".join(
            [
                f"GPU     none attached.  {_way_to_one(answer['workspace'])}",
                f"Team    {_quota_line(answer, gpu_type)}",
                f"Free    {_free_line(answer, gpu_type)}",
            ]
        )
    lease = own["lease"]
    held = (now - instant(lease["grantedAt"])).total_seconds()
    used = memory(own["usedMemoryBytes"])
    total = memory(sum(device["memoryBytes"] for device in devices(lease)))
    if used.split()[1] == total.split()[1]:
        used = used.split()[0]
    team = _quota_line(answer, lease["gpuType"]).split(" (")[0]
    hours = own["gpuMilliHours"] / 1000
    notice = lease.get("notice")
    taken = (instant(notice["releaseAt"]) - now).total_seconds() if notice else None
    whom = "with its server" if notice and notice.get("why") == "update" else "for another team"
    working = progress(own.get("running"))
    return "\n".join(
        [
            f"GPU     {amount(lease_milli(lease))} of {place(lease)}, "
            f"for {duration(max(0, held))}, {'borrowed' if lease['borrowed'] else 'guaranteed'}",
            f"Memory  {used} of {total}      Compute  {own['computePercent']:.0f} % of your "
            f"{part(lease_milli(lease))} (last minute)",
            *([f"Running {working}"] if working else []),
            f"Ends    {_ends(own, lease, now)}"
            if taken is None
            else f"Ends    taken back in {duration(max(0, taken))} {whom}; the notebook lives on",
            f"Cost    {hours:.2f} GPU-h{_money(own, answer)}    Team {team}",
        ]
    )


def _left(until, now):
    return duration(max(0, (instant(until) - now).total_seconds()))


def _idle_end(entry):
    """When an entry of the status reaches its idle limit; None if its time limit comes first, or if unknown."""
    ends = entry.get("idleEndsAt")
    return None if ends is None or instant(ends) >= instant(entry["lease"]["expiresAt"]) else ends


def _ends(own, lease, now):
    """Both limits with their names: 'in 48 min (time limit; %gpu extend 1h), or in 20 min without GPU work (idle limit)'."""
    idle = _idle_end(own)
    tail = "" if idle is None else f", or in {_left(idle, now)} without GPU work (idle limit)"
    return f"in {_left(lease['expiresAt'], now)} (time limit; %gpu extend 1h){tail}"


def _money(own, answer):
    """', 0.21 EUR' where the GPU type has a price by the hour; brokers of before do not tell."""
    micro = own.get("costMicro")
    return "" if micro is None else f", {micro / 1e6:.2f} {answer['currency']}"


def _is_idle(entry):
    """Whether a lease did no GPU work in the last minute, by the broker's figures."""
    return entry.get("computePercent", 1) < 0.5 and entry.get("running") is None and entry.get("idleEndsAt") is not None


def gpu_state(entry):
    """The state of a lease: `reclaim` after a reclaim notice, `idle` without GPU work, else `attached`."""
    if entry["lease"].get("notice"):
        return "reclaim"
    return "idle" if _is_idle(entry) else "attached"


def in_queue(note):
    """The text '1st of 2 for 0.5 soft' for the note of a waiting request."""
    return f"{ordinal(note['position'])} of {note['of']} for {amount(note['milli'])} {note['gpuType']}"


def pill(answer, now, waiting=()):
    """The status bar's item: `{text, detail}` for all leases and for `waiting`, the notes of waiting requests.
    `detail` has one line for each."""
    queue = [f"Waiting, {in_queue(note)}" for note in waiting]
    if not answer["leases"]:
        if queue:
            return {"text": f"GPU: {queue[0][0].lower()}{queue[0][1:]}", "detail": "\n".join(queue)}
        return {"text": "GPU: none", "detail": f"No GPU borrowed. {_way_to_one(answer['workspace'])}"}
    lines, first = [], None
    for entry in answer["leases"]:
        lease = entry["lease"]
        notice, idle = lease.get("notice"), _idle_end(entry)
        if notice:
            until = f"taken back in {_left(notice['releaseAt'], now)}"
        else:
            until = f"time limit in {_left(lease['expiresAt'], now)}"
            until = until if idle is None else f"idle limit in {_left(idle, now)}, {until}"
        if gpu_state(entry) == "idle":
            until = f"idle, {until}"
        label = f" ({entry['owner']['label']})" if entry["owner"].get("label") else ""
        line = f"{amount(lease_milli(lease))} of {place(lease)}, {until}"
        working = progress(entry.get("running"))
        first = first or f"GPU: {line}" + (f", {working}" if working else "")
        lines.append(line + label + (f", {working}" if working else ""))
    if len(lines) == 1:
        return {"text": first, "detail": "\n".join([*lines, *queue])}
    total = sum(lease_milli(entry["lease"]) for entry in answer["leases"])
    return {"text": f"GPU: {amount(total)} in {len(lines)} notebooks", "detail": "\n".join([*lines, *queue])}


def _held(entry):
    """A lease for the panel: its state, its owner, and the utilization and memory of its GPU."""
    lease, owner = entry["lease"], entry["owner"]
    return {
        "state": gpu_state(entry),
        "name": f"{amount(lease_milli(lease))} of {place(lease)}",
        "label": owner.get("label") or "",
        "kernelId": owner.get("kernelId"),
        "isWorkspaces": owner.get("kind") == "workspace",
        "usedBytes": entry["usedMemoryBytes"],
        "memoryBytes": sum(device["memoryBytes"] for device in devices(lease)),
        "computePercent": entry["computePercent"],
    }


def panel(status, leases, waiting=()):
    """What JupyterLab's panel shows beside the pill.

    GPU types to choose from, what an attach takes by default as it is typed and in thousandths of a GPU of its type,
    what this workspace holds and waits for, and its latest leases.
    """
    at_once = {row["gpuType"]: row["grantedAtOnceMilli"] for row in status["free"]}
    chosen = status["workspace"]["gpuType"]
    types = [
        {"gpuType": row["gpuType"], "mostMilli": row["limitMilli"], "atOnceMilli": at_once.get(row["gpuType"], 0)}
        for row in sorted(status["team"]["quotas"], key=lambda row: (row["gpuType"] != chosen, row["gpuType"]))
    ]
    return {
        "types": types,
        "default": {
            "gpuType": chosen,
            "typed": status["workspace"]["defaultAmount"],
            "milli": status["workspace"]["defaultMilli"],
        },
        "policy": status["workspace"]["gpuPolicy"],
        "team": status["team"]["name"],
        "workspace": status["workspace"]["name"],
        "held": [_held(entry) for entry in status["leases"]],
        "waiting": [{"kernelId": note.get("kernelId"), "place": in_queue(note)} for note in waiting],
        "history": [
            {
                "id": lease["id"],
                "amount": f"{amount(lease['milli'])} {lease['gpuType']}",
                "label": lease["owner"].get("label") or "",
                "from": lease["grantedAt"],
                "to": lease["endedAt"],
                "end": lease["endReason"] or "",
            }
            for lease in leases
        ],
    }


def _free_line(answer, gpu_type):
    rows = [row for row in answer["free"] if row["gpuType"] == gpu_type] or answer["free"]
    if not rows:
        return "no GPU in the pool"
    row = rows[0]
    if row["grantedAtOnceMilli"] > 0:
        return f"{amount(row['grantedAtOnceMilli'])} {row['gpuType']}, granted at once.  All types: %gpu free"
    return f"no {row['gpuType']} for this team now; an attach waits in the queue.  All types: %gpu free"


def free(answer):
    """What `%gpu free` shows: one line a GPU type."""
    if not answer["free"]:
        return "No GPU in the pool. Ask an admin to add a GPU server."
    rows = [("Type", "Granted at once", "Free", "Team's limit")]
    limits = {row["gpuType"]: quota(row["limitMilli"]) for row in answer["team"]["quotas"]}
    for row in answer["free"]:
        rows.append(
            (
                row["gpuType"],
                amount(row["grantedAtOnceMilli"]),
                quota(row["freeMilli"]),
                limits.get(row["gpuType"], "none"),
            )
        )
    return columns(rows)


def _sentence(text):
    return text if text.endswith((".", "!", "?")) else text + "."


def queued(answer, waited, wait):
    """The live block of a waiting attach: place, why, when, what would be sooner."""
    reason = answer["reason"]
    holders = reason.get("holders") or []
    lines = [
        f"Queued  {ordinal(answer['position'])} of {answer['of']} for {amount(answer['milli'])} {answer['gpuType']}.  "
        f"{clock(waited)} of {clock(wait)}.  Stop leaves the queue."
    ]
    message = reason["message"].rstrip(".:")
    lines.append(f"Why     {message}{':' if holders else ''}")
    if holders:
        lines.append(
            "        "
            + "; ".join(f"{h['amount']} {h['who']}" + (f", {h['label']}" if h.get("label") else "") for h in holders)
        )
    if answer.get("likelySeconds") is not None:
        lines.append(f"Likely  in {_wait(answer)}")
    if reason.get("hint"):
        lines.append(f"Sooner  {reason['hint']}")
    return "\n".join(lines)


def _wait(answer):
    """'about 14 min'; '19 min (idle limit) to 3 h 59 min (time limit)' while the lease that holds the GPU works."""
    likely, soonest = duration(answer["likelySeconds"]), answer.get("soonestSeconds")
    return f"about {likely}" if soonest is None else f"{duration(soonest)} (idle limit) to {likely} (time limit)"


def request_page(portal, status, typed, gpu_type=None):
    """Address of the form that asks a team's lead for what is missing to `typed`; None when an amount is no number."""
    try:
        wanted = float(typed or status["workspace"]["defaultMilli"] / 1000)
    except ValueError:
        return None
    gpu_type = gpu_type or status["workspace"]["gpuType"]
    limit = next((row["limitMilli"] / 1000 for row in status["team"]["quotas"] if row["gpuType"] == gpu_type), 0)
    missing = wanted - limit if wanted > limit else wanted
    return f"{portal.rstrip('/')}/teams/{status['team']['name']}?more={round(missing, 3):g}"


def _fits_now(reason, status=None):
    """What to type for what would be granted at once: of the type asked for first, then of the others in `status`.

    What a notebook has in GPU memory without a GPU is parked, and binds it to the type that it is on.
    """
    asked = reason.get("gpuType")
    rows = [(asked, reason.get("fitsNowMilli") or 0)]
    if asked and status and not status.get("usedBytes"):
        rows += [(row["gpuType"], row["grantedAtOnceMilli"]) for row in status["free"] if row["gpuType"] != asked]
    return [
        f"%gpu attach {amount(milli)}" + (f" --type {gpu_type}" if gpu_type else "") for gpu_type, milli in rows if milli
    ]


def refused(reason, more=None, status=None):
    """The message of GpuRefused, without the exception's name.

    `more` is the page that asks for more, `status` what each GPU type has free for this notebook.
    """
    lines = [_sentence(reason["message"])]
    now, largest, hint = _fits_now(reason, status), reason.get("largestMilli"), reason.get("hint")
    facts = []
    if now:
        facts.append(f"Fits now  {now[0]}")
    if largest:
        facts.append(f"Largest possible  {amount(largest)}")
    if facts:
        lines.append("  " + "        ".join(facts))
    lines += [f"            {line}" for line in now[1:]]
    if hint and hint not in now:
        lines.append(f"  Try       {hint}")
    if more:
        lines.append(f"  More      ask your team lead: {more}")
    return "\n".join(lines)


def not_granted(asked, reason, waited, typed=""):
    """The message of GpuNotGranted after the waiting time is over. `asked` is what was asked for, '0.5 soft'."""
    lines = [f"{asked} did not become free within {clock(waited)}; left the queue."]
    if reason:
        lines.append(f"  Why       {_sentence(reason['message'])}")
        if reason.get("hint"):
            lines.append(f"  Sooner    {reason['hint']}")
    lines.append(f"  Wait on   %gpu attach {typed} --wait 10m".replace("  --", " --"))
    return "\n".join(lines)


def taken_out(asked, reason):
    """The message of GpuNotGranted when somebody took the request out of the queue on a page."""
    return f"{asked} left the queue: {reason['message']}."


def left_queue(asked):
    """The message of GpuNotGranted after Stop."""
    return f"stopped; left the queue for {asked}."


def asked_for(answer, typed):
    """What a request asked for, in words: '0.5 soft'."""
    if answer and answer.get("milli"):
        return f"{amount(answer['milli'])} {answer.get('gpuType', '')}".strip()
    return typed or "the default amount"


# The rules in the order in which the broker tests them, with the words of `%gpu why`.
_RULES = (
    ("taken-out", "queue"),
    ("gpu-policy", "GPU policy"),
    ("amount", "amount"),
    ("gpu-type", "GPU type"),
    ("stopped", "new leases"),
    ("no-server", "GPU server"),
    ("needs", "needs"),
    ("calendar", "calendar"),
    ("budget", "budget"),
    ("team-limit", "team limit"),
    ("person-limit", "your limit"),
    ("guaranteed", "guaranteed"),
    ("pinned", "parked data"),
    ("reclaim", "taken back"),
    ("free-device", "free device"),
    ("order", "order"),
)


def why(answer, answer_status, asked, waited):
    """What `%gpu why` shows for the last attach that was not granted at once."""
    reason = answer.get("reason")
    state = answer["state"]
    words = {"queued": "queued", "refused": "refused", "expired": "waiting time over", "cancelled": "left the queue"}
    head = f"{asked}, team {answer_status['team']['name']}, {words.get(state, state)}"
    if state == "queued":
        head += f" {duration(waited)}, {ordinal(answer['position'])} of {answer['of']}"
    if reason is None:
        return head
    lines = [head]
    gpu_type = answer.get("gpuType") or answer_status["workspace"]["gpuType"]
    known = {}
    for row in answer_status["team"]["quotas"]:
        if row["gpuType"] == gpu_type:
            known["team-limit"] = f"{quota(row['usedMilli'])} of {quota(row['limitMilli'])} in use"
    for row in answer_status["free"]:
        if row["gpuType"] == gpu_type:
            known["free-device"] = f"{quota(row['freeMilli'])} free"
    passed = True
    for rule, label in _RULES:
        if rule == reason["rule"]:
            lines.append(f"  HERE  {label:<12}  {reason['message']}")
            passed = False
        elif rule in known and passed:
            lines.append(f"  ok    {label:<12}  {known[rule]}")
    for holder in reason.get("holders") or ():
        label = f", {holder['label']}" if holder.get("label") else ""
        lines.append(f"        {'':<12}  {holder['amount']} {holder['who']}{label}")
    now = _fits_now(reason, answer_status)
    lines += [f"  {'Now' if at == 0 else '   '}   {line}" for at, line in enumerate(now)]
    if reason.get("hint") and reason["hint"] not in now:
        lines.append(f"  Try   {reason['hint']}")
    if answer.get("likelySeconds") is not None:
        lines.append(f"  When  in {_wait(answer)}")
    return "\n".join(lines)


def nothing_waited():
    """The answer of `%gpu why` when the last attach was granted at once, or there was none."""
    return "Nothing waits: the last attach of this notebook was granted, or there was none."


def trace(counted, places):
    """What `%gpu trace` shows: the blocking round trips of a cell by cause, the longest wait first.

    `counted` is the client's answer; `places` maps its sites to (where, source line).
    """
    rows = sorted((row for row in counted["calls"] if row["blocking"]), key=lambda row: -row["waitedUs"])
    waited = sum(row["waitedUs"] for row in rows) / 1e6
    sent = sum(row["bytes"] for row in counted["calls"])
    blocking, posted = counted["blocking"], counted["posted"]
    head = (
        f"{blocking} blocking round trip{'' if blocking == 1 else 's'}, {waiting(waited)} waited; "
        f"{posted} call{'' if posted == 1 else 's'} sent without waiting; {memory(sent)} in all."
    )
    if not rows:
        return head
    table = [("Times", "Waited", "Function", "For", "Line")]
    for row in rows:
        where, source = places.get(row["site"], ("", ""))
        line = f"{where}: {source}" if source else where
        table.append(
            (str(row["count"]), waiting(row["waitedUs"] / 1e6), row["function"], row["operation"], line or "(not Python)")
        )
    return head + "\n" + columns(table, right=2)


def waiting(seconds):
    """A short wait: '812 us', '1.5 ms', '2.0 s'."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def columns(rows, right=0):
    """Rows in columns of their own width; the first `right` columns are aligned to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = (
            cell.rjust(width) if column < right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        )
        lines.append("   ".join(cells).rstrip())
    return "\n".join(lines)


def trace_begins():
    """The answer to the first `%gpu trace`."""
    return "Tracing from the next cell on: run it, then %gpu trace.  %gpu trace off ends it."


def trace_ends():
    """The answer to `%gpu trace off`."""
    return "Tracing is off."


def logs(lines):
    """What `%gpu logs` shows: a time of day with its zone and a sentence a line, the oldest first."""
    if not lines:
        return "Nothing has happened to this notebook's GPU yet."
    times = (datetime.datetime.fromtimestamp(line["at"]).astimezone().strftime("%H:%M:%S %Z") for line in lines)
    return "\n".join(f"{at}  {line['text']}" for at, line in zip(times, lines))
