"""`%gpu trace` in a real IPython: which line of a cell a blocking call comes from."""

import ctypes
import os
import pathlib

import pytest
from IPython.core.interactiveshell import InteractiveShell

from sluice_gpu import _client, _trace


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.history_manager.enabled = False
    yield shell
    InteractiveShell.clear_instance()


def test_the_place_is_the_users_line_and_not_the_librarys(shell):
    tracer = _trace.Tracer(shell)
    shell.user_ns["site"] = tracer._site
    # functools stands for a framework: code of the standard library between the user's line and the call.
    shell.run_cell("import functools\nx = 1\nn = functools.reduce(lambda a, b: site(b'', b''), [1, 2])", store_history=True)
    (where, source), = tracer.places().values()
    assert where.endswith("line 3") and where.startswith("In[")
    assert source.startswith("n = functools.reduce")
    assert shell.user_ns["n"] == 1


@pytest.mark.skipif(not os.environ.get("SLUICE_NATIVE_DIR"), reason="SLUICE_NATIVE_DIR is not set")
def test_with_the_real_library_cells_are_counted_one_by_one(shell, capsys, monkeypatch):
    monkeypatch.setenv("SLUICE_LIBRARY_DIR", str(pathlib.Path(os.environ["SLUICE_NATIVE_DIR"]).resolve()))
    shell.run_line_magic("load_ext", "sluice_gpu")
    shell.run_cell("%gpu trace")
    assert "Tracing from the next cell on" in capsys.readouterr().out
    shell.run_cell("x = 1")
    shell.run_cell("%gpu trace")
    assert "0 blocking round trips, 0 us waited; 0 calls sent without waiting" in capsys.readouterr().out
    shell.run_cell("%gpu trace off")
    assert shell._sluice_gpu.tracer.last is None
    assert isinstance(_client._load(), ctypes.CDLL)
    shell.run_line_magic("unload_ext", "sluice_gpu")


@pytest.mark.skipif(not os.environ.get("SLUICE_NATIVE_DIR"), reason="SLUICE_NATIVE_DIR is not set")
def test_logs_are_there_without_a_broker(shell, capsys, monkeypatch):
    monkeypatch.setenv("SLUICE_LIBRARY_DIR", str(pathlib.Path(os.environ["SLUICE_NATIVE_DIR"]).resolve()))
    shell.run_line_magic("load_ext", "sluice_gpu")
    shell.run_cell("%gpu logs --json")
    assert capsys.readouterr().out.strip().startswith("[")
    shell.run_line_magic("unload_ext", "sluice_gpu")
