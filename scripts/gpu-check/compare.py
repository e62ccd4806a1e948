"""What is compared, in which order and how long, and whether it is within its reach: functions of data alone."""

import itertools

# What is asked as a ratio is measured first: whatever is slow or cut behind it costs none of that.
PARTS = ("training", "4", "5", "attach", "killed", "share", "1", "cuda", "operations", "3")
# These are not timed: they run side by side, where they follow each other.
COMPARED = ("1", "cuda", "operations", "3")
# Seconds for all of it, and how much of that is for beginning and ending.
LIMIT, BEGINNING, ENDING = 480, 10, 5
# Seconds that a part may take. On an H200 with 16 cores training took 17 for each of five runs, copies 20, parking 13,
# attach about 40, shares 23 and what is compared 136 (its slowest part); what one does not need is left for the others.
TIMES = {"training": 135, "4": 25, "5": 20, "attach": 60, "killed": 30, "share": 45, **dict.fromkeys(COMPARED, 150)}
# The models in the order in which they train, and the most that a median step by each way may be over native's.
REACH = {
    "mlp": {},
    "gpt2_8x1024": {"unix": 1.01, "tls": 1.01, "rtt1": 1.05},
    "gpt2_1x128": {"unix": 1.15, "tls": 1.15},
    "resnet50_64": {"unix": 1.03, "tls": 1.03},
}
# A step of the toy reads its loss once: by each way it may take what it takes natively and one round trip more.
ONE_ROUND_TRIP = ("mlp",)
# Ways to gpud, in the order in which they are measured.
WAYS = ("unix", "tls", "rtt1")


def together(names):
    """The parts in the order given: lists of those that run side by side."""
    runs = itertools.groupby(enumerate(names), lambda at: COMPARED if at[1] in COMPARED else at)
    return [[name for _, name in run] for _, run in runs]


def needed(groups):
    """The seconds that parts in their groups may take."""
    return sum(max(TIMES[name] for name in group) for group in groups)


def part_ends(part, now, end, behind):
    """When a part that begins now has to end, of all that has to end at `end`: after its own time, or later by what
    those before it have left over, as long as the groups behind it have theirs."""
    return min(end, max(now + TIMES[part], end - needed(behind)))


def off(run, other):
    """The largest difference between the losses of two runs, as far as both came, of the loss where that is above 0.01;
    None where one of them has none."""
    if not run or not other or not run.get("losses") or not other.get("losses"):
        return None
    return max(abs(one - two) / max(abs(two), 0.01) for one, two in zip(run["losses"], other["losses"]))


def differ(native, remoted):
    """Whether a sample differs from native's in any bit, so that only another native run can say what that means."""
    return any("digest" in value and value["digest"] != remoted.get(name, {}).get("digest", value["digest"])
               for name, value in native.items())


def compare_values(native, again, remoted):
    """Samples of results by name: what differs from native by more than native from itself, in another run or in the
    same one."""

    def difference(one, other):
        if one["digest"] == other["digest"]:
            return 0.0
        scale = max((abs(value) for value in one["samples"]), default=1.0) or 1.0
        return max(abs(a - b) for a, b in zip(one["samples"], other["samples"], strict=True)) / scale

    outcome = {}
    for name, value in native.items():
        other, mine = again.get(name), remoted.get(name)
        if "skipped" in value:
            outcome[name] = {"skipped": value["skipped"]}
        elif "error" in value:
            outcome[name] = {"native": value["error"]}
        elif mine is None or "digest" not in mine:
            outcome[name] = {"remoted": (mine or {}).get("error") or (mine or {}).get("skipped") or "no result"}
        else:
            noise = difference(value, other) if other and "digest" in other else 0.0
            noise = max(noise, value.get("noise", 0.0))
            found = difference(value, mine)
            outcome[name] = {"noise": noise, "difference": found, "ok": found <= noise}
    return outcome


def compare_outcomes(names, native, again, remoted):
    """Programs that pass or do not: those whose outcome differs from native's, and those that two native runs tell
    apart. What a run was cut before has no outcome: natively that says nothing, remoted it differs."""
    unsteady = [name for name in names if name in again and native.get(name) != again[name]]
    steady = [name for name in names if name in native and name not in unsteady]
    return [name for name in steady if remoted.get(name) != native[name]], unsteady


def same_losses(run, native, again):
    """Whether losses are native's to the bit; where native's own differ between two runs, whether they are about as far
    off: two distances of the same kind, so twice as far is let pass."""
    mine = off(run, native)
    return mine is not None and mine <= 2 * (off(again, native) or 0)


def compare_step(native, again, mine, reach, trip_ms=None):
    """One model by one way: its median step against the faster of two native runs, which differ by a third at times.
    Its reach is their ratio, or, where `trip_ms` is given, so much more and what the native runs differ.

    Each run is a line of torch_training.py; times are in milliseconds."""
    times = (native["step_ms"], again.get("step_ms", native["step_ms"]))
    step_ms, noise_ms = min(times), max(times) - min(times)
    ratio, added_ms = mine["step_ms"] / step_ms, mine["step_ms"] - step_ms
    found = {"ratio": round(ratio, 4), "reach": reach, "added_ms": round(added_ms, 4)}
    within = reach is None or ratio <= reach
    if trip_ms is not None:
        found |= {"round_trip_ms": round(trip_ms, 4), "native_noise_ms": round(noise_ms, 4)}
        within = added_ms <= trip_ms + noise_ms
    found |= {"losses_off": off(mine, native), "losses_off_natively": off(again, native)}
    if native.get("peak_bytes") and "peak_bytes" in mine:
        found["peak_memory"] = round(mine["peak_bytes"] / native["peak_bytes"], 4)
    return {**found, "ok": within and same_losses(mine, native, again)}


def compare_training(runs):
    """What each model takes by each way, and whether all is within reach.  A model that fails natively is no fault of
    ours; one that a run did not come to is not within reach."""
    ratios, within = {}, True
    for name, reaches in REACH.items():
        native, again = runs["native"].get(name, {}), runs.get("again", {}).get(name, {})
        if "step_ms" not in native:
            why = native.get("error") or runs["native"].get("failed", {}).get("error", "no result")
            ratios[name] = {"cannot": f"natively: {why}"}
            within = within and "error" in native
            continue
        ratios[name] = {}
        for way in WAYS:
            run = runs.get(way, {})
            mine = run.get(name, {})
            trip_ms = run.get("round_trip", {}).get("launch_and_wait_ms") if name in ONE_ROUND_TRIP else None
            if name in ONE_ROUND_TRIP and trip_ms is None and "step_ms" in mine:
                ratios[name][way] = {"cannot": "the round trip was not measured", "ok": False}
            elif "step_ms" in mine:
                ratios[name][way] = compare_step(native, again, mine, reaches.get(way), trip_ms)
            else:
                why = mine.get("error") or run.get("failed", {}).get("error", "no result")
                ratios[name][way] = {"cannot": why, "ok": False}
            within = within and ratios[name][way]["ok"]
    return ratios, within
