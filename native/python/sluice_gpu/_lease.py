"""Attach and detach, the same for the magics and for scripts; what differs is how a waiting line is shown."""

import gc
import os
import sys
import time
import uuid

from . import _client, _news, _notice, _text

# Short, so that Stop and the live line come through within a second; the broker answers earlier when it has news.
POLL_SECONDS = 1


class GpuError(Exception):
    """Something about the GPU did not work out. Notebooks show the message alone, without a stack trace."""

    def _render_traceback_(self):
        return [f"{type(self).__name__}: {self}"]


class GpuRefused(GpuError):
    """The request cannot be met under today's rules."""


class GpuNotGranted(GpuError):
    """The waiting time was over, or the wait was stopped."""


class Waiting:
    """The last attach of this process that was not granted at once; `%gpu why` explains it."""

    def __init__(self):
        self.answer = None
        self.asked = ""
        self.since = 0.0
        self.request_id = None


waiting = Waiting()


def _ask(op, **fields):
    try:
        return _client.request(op, **fields)
    except _client.ClientProblem as problem:
        if problem.code in ("refused", "quota", "invalid"):
            raise GpuRefused(str(problem)) from None
        raise GpuError(str(problem)) from None


def _poll(request_id, seconds):
    """The place in the queue, or None while the broker or its database is away: the place is kept meanwhile."""
    try:
        return _client.request("poll", requestId=request_id, waitSeconds=seconds)
    except _client.ClientProblem as problem:
        if problem.code != "unavailable":
            raise GpuError(str(problem)) from None
        time.sleep(seconds)
        return None


def borrow(request, show=None):
    """Ask for a lease and wait for it. `request` is what `_text.parse_line` gives.

    `show(text)` is called with the live block while the request waits.
    Returns the broker's answer with `seconds`, the time from the call to a connected GPU.
    """
    began = time.monotonic()
    wait = request.get("wait", _text.DEFAULT_WAIT_SECONDS)
    typed = request.get("amount", "")
    request_id = str(uuid.uuid4())
    answer = None
    waiting.answer = None
    waiting.request_id = request_id
    try:
        answer = _ask(
            "attach",
            requestId=request_id,
            amount=typed,
            memory=request.get("mem"),
            gpuType=request.get("type"),
            waitSeconds=wait,
            guaranteed=True if request.get("guaranteed") else None,
            priority=request.get("priority"),
            forSeconds=request.get("for"),
            scope="workspace" if request.get("workspace") else None,
        )
        while answer["state"] == "queued":
            waiting.answer, waiting.asked, waiting.since = answer, _text.asked_for(answer, typed), began
            _news.waits(answer, _client.own_kernel())
            if show is not None:
                show(_text.queued(answer, time.monotonic() - began, wait))
            left = wait - (time.monotonic() - began)
            if left <= 0:
                _leave(request_id, "expired")
                raise GpuNotGranted(_text.not_granted(waiting.asked, answer["reason"], wait, typed))
            answer = _poll(request_id, min(POLL_SECONDS, max(0.05, left))) or answer
    except KeyboardInterrupt:
        _leave(request_id, "cancelled")
        raise GpuNotGranted(_text.left_queue(waiting.asked or typed or "a GPU")) from None
    finally:
        _news.waits_no_more()
    if answer["state"] == "granted":
        waiting.answer = waiting.request_id = None
        forget_ended(answer.get("ended"))
        _notice.watch(answer["lease"]["id"])
        return {**answer, "seconds": time.monotonic() - began}
    asked = waiting.asked or _text.asked_for(answer, typed)
    reason = answer.get("reason") or (waiting.answer or {}).get("reason")
    waiting.answer, waiting.asked, waiting.request_id = {**answer, "reason": reason}, asked, None
    if answer["state"] == "refused":
        status = _status_of_refusal()
        more = _request_page(answer["reason"], status, typed, request.get("type"))
        raise GpuRefused(_text.refused(answer["reason"], more, status))
    if answer["state"] == "cancelled" and (answer.get("reason") or {}).get("rule") == "taken-out":
        raise GpuNotGranted(_text.taken_out(asked, reason))
    raise GpuNotGranted(_text.not_granted(asked, reason, time.monotonic() - began, typed))


def _status_of_refusal():
    """What the team may use and what is free; None when nobody can say."""
    try:
        return _client.request("status")
    except _client.ClientProblem:
        return None


def _request_page(reason, status, typed, gpu_type):
    """Where to ask for more than the team's limit; None where that would not help or nobody can say."""
    portal = os.environ.get("SLUICE_PORTAL_URL")
    if reason["rule"] != "team-limit" or not portal or status is None:
        return None
    return _text.request_page(portal, status, typed, gpu_type)


def _leave(request_id, state):
    """Leave the queue; a grant that came at the same moment is given back."""
    waiting.request_id = None
    if waiting.answer is not None:
        waiting.answer = {**waiting.answer, "state": state}
    try:
        answer = _client.request("cancel", requestId=request_id)
        if answer.get("state") == "granted":
            _client.request("detach")
    except _client.ClientProblem:
        # The broker drops a request that nobody asks about, and a grant that nobody claims.
        pass


def cancel_waiting():
    """`%gpu cancel`: True when a request of this process was waiting."""
    if waiting.request_id is None:
        return False
    _leave(waiting.request_id, "cancelled")
    return True


def own_lease():
    """This process's entry in the broker's status, or None."""
    return _text.own_lease(_ask("status"), *_client.own_process())


def give_back():
    """Detach: first let go of what only caches hold, so that less is parked. Returns the broker's answer."""
    free_caches()
    answer = _ask("detach")
    _notice.forget()
    _news.changed()
    return answer


def extend(seconds):
    """Keep the GPU for longer; the broker's answer with the new end."""
    answer = _ask("extend", forSeconds=seconds)
    _news.changed()
    return answer


def free_caches():
    """Let loaded frameworks give cached device memory back. Imports nothing and never raises."""
    gc.collect()
    for module, free in (
        ("numba.cuda.cudadrv.devices", lambda m: m.get_context().deallocations.clear()),
        # The work spaces of its products of matrices, which it keeps for each stream.
        ("torch", lambda m: m.cuda.is_initialized() and m._C._cuda_clearCublasWorkspaces()),
        ("torch", lambda m: m.cuda.is_initialized() and m.cuda.empty_cache()),
        (
            "cupy",
            lambda m: (
                m.get_default_memory_pool().free_all_blocks(),
                m.get_default_pinned_memory_pool().free_all_blocks(),
            ),
        ),
    ):
        loaded = sys.modules.get(module)
        if loaded is not None:
            try:
                free(loaded)
            except Exception:  # noqa: BLE001 - giving back must work in whatever state a framework is
                pass


_ended = 0


def forget_ended(ended):
    """Let loaded frameworks forget what they keep of GPUs that are gone, now that another is attached. `ended` counts
    those GPUs, as the client answers it: None while none is attached. Imports no framework and never raises."""
    global _ended
    if ended is None or ended == _ended:
        return
    _ended = ended
    free_caches()
    if "jax" in sys.modules:
        try:
            from jax.extend import backend

            # JAX keeps its memory, and streams that it knows to have failed: it begins anew at its next use.
            backend.clear_backends()
        except Exception as error:  # noqa: BLE001 - attaching must work in whatever state a framework is
            print(f"sluice: JAX cannot begin anew on another GPU: {error}. Restart the kernel.", file=sys.stderr)


class attach:  # noqa: N801 - reads as a verb: `with sluice_gpu.attach("0.5"):`
    """Borrow a GPU for this process, and give it back at the end of the `with` block.

    `amount` is what `%gpu attach` takes: "0.5", "2", "40G", or nothing for the workspace's default. `memory` ("8G") is
    GPU memory beside a part of a GPU; without it, that follows the amount.
    `wait` and `duration` are seconds; `priority` is "low", "normal" or "high" among the team's requests.
    Raises GpuRefused or GpuNotGranted.
    Called without `with`, the lease stays until `detach()` or the end of the process.
    """

    def __init__(
        self,
        amount="",
        *,
        memory=None,
        gpu_type=None,
        wait=_text.DEFAULT_WAIT_SECONDS,
        duration=None,
        guaranteed=False,
        priority=None,
    ):
        request = {"amount": str(amount), "wait": wait}
        if priority is not None:
            if priority not in _text.PRIORITIES:
                raise ValueError(f"priority is one of {', '.join(_text.PRIORITIES)}, not {priority!r}")
            request["priority"] = priority
        if memory:
            request["mem"] = str(memory)
        if gpu_type:
            request["type"] = gpu_type
        if duration:
            request["for"] = duration
        if guaranteed:
            request["guaranteed"] = True
        try:
            _client.ensure_owner(label=sys.argv[0] or None)
        except _client.ClientProblem as problem:
            raise GpuError(str(problem)) from None
        self.lease = borrow(request)["lease"]

    def detach(self):
        """Give the GPU back; doing it twice does nothing."""
        if self.lease is not None:
            self.lease = None
            give_back()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.detach()
