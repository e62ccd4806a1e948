"""The IPython side: `%gpu`, `%%gpu`, and the sentence under a cell that failed for want of a GPU."""

import datetime
import json
import os
import re
import sys

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class

from . import _client, _lease, _notice, _text, _trace


def load(shell):
    """Register the magics; loading twice is harmless."""
    if getattr(shell, "_sluice_gpu", None) is not None:
        return
    magics = GpuMagics(shell)
    shell._sluice_gpu = magics
    shell.register_magics(magics)
    shell._showtraceback = magics.show_failure
    shell.events.register("pre_run_cell", magics.before_cell)
    shell.events.register("post_run_cell", magics.after_cell)
    shell.set_hook("complete_command", magics.complete, str_key="%gpu")
    shell.set_hook("complete_command", magics.complete, str_key="%%gpu")
    magics.become_owner()


def unload(shell):
    """Take the magics away; a lease that is held stays held."""
    magics = getattr(shell, "_sluice_gpu", None)
    if magics is None:
        return
    magics.tracer.stop()
    shell.events.unregister("pre_run_cell", magics.before_cell)
    shell.events.unregister("post_run_cell", magics.after_cell)
    shell._showtraceback = magics.show_in_full
    shell.magics_manager.magics["line"].pop("gpu", None)
    shell.magics_manager.magics["cell"].pop("gpu", None)
    shell._sluice_gpu = None


def kernel_id(shell):
    """Jupyter's id of this kernel, from the name of its connection file; None in a terminal."""
    if getattr(shell, "kernel", None) is None:
        return None
    try:
        from ipykernel.connect import get_connection_file

        name = os.path.basename(get_connection_file())
    except (ImportError, RuntimeError):
        return None
    match = re.fullmatch(r"kernel-(.+)\.json", name)
    return match.group(1) if match else None


def notebook_name(shell):
    """The notebook's file name when the front end told it, for others to read in the queue."""
    path = os.environ.get("JPY_SESSION_NAME") or shell.user_ns.get("__vsc_ipynb_file__") or ""
    return os.path.basename(path) or None


class LiveBlock:
    """One block of text that is rewritten in place: by display id in notebooks, by cursor moves in terminals."""

    def __init__(self, shell):
        self._shell = shell
        self._handle = None
        self._shown = None

    def show(self, text):
        """Replace what stands there by `text`."""
        if text == self._shown:
            return
        if getattr(self._shell, "kernel", None) is not None:
            from IPython.display import display

            data = {"text/plain": text}
            if self._handle is None:
                self._handle = display(data, raw=True, display_id=True)
            else:
                self._handle.update(data, raw=True)
        elif sys.stdout.isatty():
            back = f"\x1b[{self._shown.count(chr(10)) + 1}F\x1b[J" if self._shown is not None else ""
            print(back + text, flush=True)
        elif self._shown is None or self._shown.splitlines()[1:] != text.splitlines()[1:]:
            # No way to rewrite: a new block only when more than the running time has changed.
            print(text, flush=True)
        self._shown = text

    def finish(self, text):
        """The last text: in the place of the live block when there is one."""
        if self._shown is not None:
            self.show(text)
        else:
            print(text, flush=True)

    def close(self, text):
        """Like finish, but says nothing when nothing was shown."""
        if self._shown is not None:
            self.show(text)


@magics_class
class GpuMagics(Magics):
    """`%gpu` and `%%gpu`."""

    def __init__(self, shell):
        super().__init__(shell)
        self._inside_cell_magic = False
        self._failed_call = None
        self.show_in_full = shell._showtraceback
        self.tracer = _trace.Tracer(shell)

    def become_owner(self):
        """Name this kernel as the owner of its leases. Where that fails, the first %gpu says why.

        IPython started from a notebook uses the notebook's lease until it attaches one of its own.
        """
        if getattr(self.shell, "kernel", None) is None and "SLUICE_OWNER_SOCKET" in os.environ:
            return
        try:
            self._ensure_owner()
            _client.tell_first_use(_notice.attached_by_itself)
        except _client.ClientProblem:
            pass

    def _ensure_owner(self):
        kind = "process" if getattr(self.shell, "kernel", None) is None else "kernel"
        _client.ensure_owner(kind, kernel_id(self.shell), notebook_name(self.shell))

    @line_magic
    def gpu(self, line):
        """Borrow a GPU, give it back, or see what there is. `%gpu help` lists the forms."""
        request = self._parse(_text.parse_line, line)
        if request["action"] == "help":
            print(_text.USAGE)
            return
        self._owner_or_raise()
        getattr(self, f"_{request['action']}")(request)

    @cell_magic("gpu")
    def gpu_cell(self, line, cell):
        """Borrow a GPU for this cell alone; it is given back also when the cell raises."""
        request = self._parse(_text.parse_cell_line, line)
        if request["action"] == "help":
            print(_text.USAGE)
            return
        self._owner_or_raise()
        if _lease.own_lease() is not None:
            raise _lease.GpuError("this notebook has a GPU already: run the cell without %%gpu, or %gpu detach first.")
        self._attach(request)
        try:
            failure = self._run(cell)
        finally:
            self._detach(request)
        if failure is not None:
            raise failure

    @staticmethod
    def _parse(parse, line):
        try:
            return parse(line)
        except _text.UsageProblem as problem:
            raise UsageError(f"%gpu: {problem}") from None

    def _owner_or_raise(self):
        try:
            self._ensure_owner()
        except _client.ClientProblem as problem:
            raise _lease.GpuError(str(problem)) from None

    def _run(self, cell):
        """Run the cell as if it stood alone; its failure is returned and shows only the cell's own frames."""
        shown = []
        self._inside_cell_magic = True
        before = vars(self.shell).get("_showtraceback")
        self.shell._showtraceback = lambda etype, value, lines: shown.append((value, lines))
        try:
            result = self.shell.run_cell(cell, store_history=False)
        finally:
            if before is None:
                del self.shell._showtraceback
            else:
                self.shell._showtraceback = before
            self._inside_cell_magic = False
        failure = result.error_before_exec or result.error_in_exec
        if failure is not None and shown:
            lines = shown[-1][1]
            try:
                failure._render_traceback_ = lambda: lines
            except AttributeError:
                # An exception type without room for attributes shows the frames of %%gpu too.
                pass
        return failure

    def _status(self, request):
        answer = _lease._ask("status")
        if request.get("json"):
            print(json.dumps(answer, indent=2))
            return
        own = _text.own_lease(answer, *_client.own_process())
        if own is not None:
            # gpud reports every few seconds; what this process holds it knows at once.
            own["usedMemoryBytes"] = max(own["usedMemoryBytes"], answer.get("usedBytes") or 0)
        print(_text.status(answer, own, datetime.datetime.now(datetime.timezone.utc)))

    def _attach(self, request):
        block = LiveBlock(self.shell)
        try:
            answer = _lease.borrow(request, block.show)
        except _lease.GpuError:
            block.close("Left the queue.")
            raise
        if request.get("json"):
            block.finish(json.dumps(answer, indent=2))
        elif answer.get("already"):
            block.finish(_text.already_attached(answer["lease"]))
        else:
            lease = answer["lease"]
            block.finish(_text.attached(lease, answer["seconds"], self._quotas() if lease["borrowed"] else ()))

    @staticmethod
    def _quotas():
        try:
            return _lease._ask("status")["team"]["quotas"]
        except _lease.GpuError:
            # What was attached is attached, whether more can be told of it or not.
            return ()

    def _detach(self, request):
        own = _lease.own_lease()
        if own is None:
            print(_text.nothing_to_give_back())
            return
        answer = _lease.give_back()
        if request.get("json"):
            print(json.dumps(answer, indent=2))
        else:
            print(_text.given_back({"milli": _text.lease_milli(own["lease"]), **answer}))

    def _extend(self, request):
        if _lease.own_lease() is None:
            print(_text.nothing_to_extend())
            return
        answer = _lease.extend(request.get("for", _text.EXTEND_SECONDS))
        if request.get("json"):
            print(json.dumps(answer, indent=2))
        else:
            print(_text.extended(answer, datetime.datetime.now(datetime.timezone.utc)))

    def _cancel(self, request):
        left = _lease.cancel_waiting()
        if request.get("json"):
            print(json.dumps({"left": left}))
        else:
            print("Left the queue." if left else "This notebook waits for nothing.")

    def _free(self, request):
        answer = _lease._ask("status")
        print(json.dumps(answer["free"], indent=2) if request.get("json") else _text.free(answer))

    def _why(self, request):
        last = _lease.waiting
        if request.get("json"):
            print(json.dumps(last.answer, indent=2))
        elif last.answer is None:
            print(_text.nothing_waited())
        else:
            print(_text.why(last.answer, _lease._ask("status"), last.asked, last.answer.get("waitedSeconds") or 0))

    def _trace(self, request):
        word = request.get("word")
        if word == "off":
            self.tracer.stop()
            print(_text.trace_ends())
        elif word == "on" or self.tracer.last is None:
            self.tracer.start()
            print(_text.trace_begins())
        elif request.get("json"):
            print(json.dumps(self.tracer.last_with_places(), indent=2))
        else:
            print(_text.trace(self.tracer.last, self.tracer.places()))

    def _logs(self, request):
        lines = _lease._ask("logs")["lines"]
        print(json.dumps(lines, indent=2) if request.get("json") else _text.logs(lines))

    def before_cell(self, info):
        """A trace counts one cell at a time; `%gpu` itself is no cell to be looked at."""
        # Discard a failure that was shown outside of a cell.
        self._failed_call = None
        if not self._inside_cell_magic and not info.raw_cell.lstrip().startswith("%gpu"):
            self.tracer.cell_begins()

    def after_cell(self, result):
        """The sentence of a CUDA call that failed for want of a GPU, as the last line under the cell."""
        if self._inside_cell_magic:
            return
        self.tracer.cell_ends()
        # Ask after every cell, so that a failure that the code has handled is not reported by a later cell.
        sentence, self._failed_call = self._failed_call or self._ask_failed_call(), None
        if sentence and not result.success:
            print(sentence, file=sys.stderr, flush=True)

    def _ask_failed_call(self):
        """The message of a CUDA call that failed without a GPU since the last query, or None."""
        try:
            answer = _client.request("message")
        except Exception:  # noqa: BLE001 - whatever is wrong with the client, cells go on
            return None
        # A GPU that the cell's first use has attached.
        _lease.forget_ended(answer.get("ended"))
        message = answer.get("message")
        return _text.failed_call(message, answer.get("kind", "lease")) if message else None

    def show_failure(self, etype, value, lines):
        """Show an exception. Fold the frames inside libraries if the cause is that no GPU is attached."""
        self._failed_call = self._ask_failed_call()
        without_gpu = (self._failed_call or "").startswith("NoGpuAttached")
        self.show_in_full(etype, value, _text.folded(lines) if without_gpu else lines)

    def complete(self, _shell, event):
        """Tab completion of a `%gpu` line."""
        before = event.text_until_cursor
        match = re.match(r"\s*%(%?)gpu\s", before)
        if not match:
            return []
        rest = before[match.end() :]
        return _text.complete("attach " + rest if match.group(1) else rest)
