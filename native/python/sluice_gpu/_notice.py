"""What the holder of a lease is told while it is held: that it will be taken back, or that it idles.

One thread asks the broker, which answers when there is something to tell; it ends with the lease.
"""

import datetime
import json
import math
import sys
import threading
import time
import traceback

from . import _broker, _news, _text

WAIT_SECONDS = 20
# Not in the way of the first kernel after an attach; a notice is ten seconds and more.
FIRST_SECONDS = 2.0
AGAIN_SECONDS = 5.0

_lock = threading.Lock()
_callbacks = []
_watched = None


def on_reclaim(function):
    """Call `function()` when this process's GPU is about to be taken back, to save what must not be lost.

    It runs in a thread of its own while the GPU still works, within the notice time (two minutes unless the pool says
    otherwise). Usable as a decorator. Every notice calls every function once; what it raises is shown and changes
    nothing else.
    """
    with _lock:
        _callbacks.append(function)
    return function


def watch(lease_id):
    """From now on this lease's notices are told, until `forget` or another lease."""
    global _watched
    with _lock:
        if _watched == lease_id:
            return
        _watched = lease_id
    threading.Thread(target=_run, args=(lease_id,), name="sluice-notice", daemon=True).start()


def attached_by_itself(lease_id, text):
    """What the first use of a GPU attaches, or waits for, is told and watched like what somebody attaches."""
    _say(text)
    _news.changed()
    if lease_id:
        watch(lease_id)


def forget():
    """The lease is given back: nothing more is told."""
    global _watched
    with _lock:
        _watched = None


def _run(lease_id):
    time.sleep(FIRST_SECONDS)
    told = {"mark": "", "notice": None, "idleEndsAt": None}
    finishing = None
    while _watched == lease_id:
        try:
            answer = _ask(lease_id, told["mark"], _patience(told["notice"], finishing))
        except Exception:  # noqa: BLE001 - a broker that is away is asked again; the lease's end is told elsewhere
            time.sleep(AGAIN_SECONDS)
            continue
        if answer["mark"] != told["mark"] or not answer["held"]:
            _news.changed()
        if _watched != lease_id or not answer["held"]:
            return
        tell(told, answer)
        if answer["notice"] != finishing and _until_finish(answer["notice"]) <= 0:
            finishing = answer["notice"]
            # A notice that is all for finishing has just been told.
            if finishing["finishAt"] != finishing["at"]:
                _say(_text.finish_now(answer, _now()))
        told = answer


def _until_finish(notice):
    """Seconds until what runs should come to its end."""
    if notice is None:
        return math.inf
    return (_text.instant(notice["finishAt"]) - _now()).total_seconds()


def _patience(notice, finishing):
    """How long to wait for news."""
    return WAIT_SECONDS if notice == finishing else max(0, min(WAIT_SECONDS, _until_finish(notice)))


def _now():
    return datetime.datetime.now(datetime.timezone.utc)


def tell(before, answer):
    """Say what is new since `before`, under the running cell or on the terminal."""
    now = _now()
    notice = answer["notice"]
    if notice is not None and notice != before["notice"]:
        _say(_text.taken_back_soon(answer, now))
        with _lock:
            callbacks = list(_callbacks)
        for function in callbacks:
            try:
                function()
            except Exception:  # noqa: BLE001 - the other functions are as important
                traceback.print_exc()
    elif notice is None and before["notice"] is not None:
        _say(_text.may_stay())
    if answer["idleEndsAt"] is not None and before["idleEndsAt"] is None:
        _say(_text.idles(answer, now))


def _say(line):
    # Without a context of its own, a thread's output goes under the cell that runs now.
    print(line, file=sys.stderr, flush=True)


def _ask(lease_id, known, wait):
    # Imported late: only who holds a lease pays for it.
    import urllib.parse

    query = urllib.parse.urlencode({"wait": f"{wait:.3f}", "known": known})
    return _broker.get_json(f"/v1/leases/{lease_id}/notice?{query}", WAIT_SECONDS + 10)
