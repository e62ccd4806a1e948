"""The magics in a real IPython: how a failing cell is shown, and how magics answer without a broker."""

import os
import pathlib
import re

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from sluice_gpu import _lease, _magics


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.history_manager.enabled = False
    yield shell
    InteractiveShell.clear_instance()


def plain(text):
    """The text without its colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.fixture
def magics(shell):
    return _magics.GpuMagics(shell)


def test_a_cell_that_works_leaves_its_names_and_shows_its_value(magics, shell, capsys):
    assert magics._run("x = 41\nx + 1") is None
    assert shell.user_ns["x"] == 41
    assert "42" in capsys.readouterr().out


def test_a_cell_that_raises_is_shown_once_with_its_own_frames_only(magics, shell, capsys):
    shell.register_magics(magics)

    failure = magics._run("def inner():\n    return 1 / 0\ninner()")
    assert isinstance(failure, ZeroDivisionError)
    assert capsys.readouterr().out == ""
    lines = plain("\n".join(failure._render_traceback_()))
    assert "ZeroDivisionError" in lines
    assert "inner()" in lines
    assert "_magics.py" not in lines
    assert "_showtraceback" not in vars(shell)


def test_a_cell_with_a_syntax_error_is_a_failure(magics):
    assert isinstance(magics._run("1 +"), SyntaxError)


def test_a_slip_raises_a_usage_error_that_names_the_right_word(magics):
    with pytest.raises(UsageError, match="did you mean attach"):
        magics.gpu("atach 0.5")


def test_help_needs_no_broker(magics, capsys):
    magics.gpu("help")
    assert "%gpu attach 0.5" in capsys.readouterr().out


def test_errors_show_without_a_stack_trace(shell, capsys):
    shell.user_ns["error"] = _lease.GpuRefused("team vision may use at most 1.0 soft at once; you asked for 2.")
    shell.run_cell("raise error")
    assert (
        plain(capsys.readouterr().out).strip()
        == "GpuRefused: team vision may use at most 1.0 soft at once; you asked for 2."
    )


def test_a_missing_native_library_is_told_at_the_first_use(shell, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("SLUICE_LIBRARY_DIR", str(tmp_path))
    monkeypatch.setattr(_magics._client, "_library", None)
    shell.run_line_magic("load_ext", "sluice_gpu")
    shell.run_cell("%gpu")
    assert "GpuError: the native client library cannot be loaded" in capsys.readouterr().out


def test_completion_after_the_magic(magics):
    class Event:
        line = text_until_cursor = "%gpu att"

    assert magics.complete(None, Event) == ["attach"]
    Event.text_until_cursor = "%%gpu 0.5 --wai"
    assert magics.complete(None, Event) == ["--wait"]
    Event.text_until_cursor = "%gpux "
    assert magics.complete(None, Event) == []


needs_native = pytest.mark.skipif(not os.environ.get("SLUICE_NATIVE_DIR"), reason="SLUICE_NATIVE_DIR is not set")


@needs_native
def test_with_the_real_library_an_unreachable_broker_is_one_sentence(shell, capsys, monkeypatch, tmp_path):
    (tmp_path / "credential").write_text("slw_" + "a" * 43)
    monkeypatch.setenv("SLUICE_LIBRARY_DIR", str(pathlib.Path(os.environ["SLUICE_NATIVE_DIR"]).resolve()))
    monkeypatch.setenv("SLUICE_BROKER_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("SLUICE_CREDENTIAL_FILE", str(tmp_path / "credential"))
    monkeypatch.setenv("SLUICE_RUNTIME_DIR", str(tmp_path))
    shell.run_line_magic("load_ext", "sluice_gpu")
    shell.run_cell("%gpu attach 0.5 --wait 0")
    shown = capsys.readouterr().out
    assert "GpuError: " in shown
    assert "Traceback" not in shown
    assert (tmp_path / f"owner-{os.getpid()}.sock").exists()
