"""Notes of a workspace's programs to its server, and files that are no notes."""

import json
import os

import pytest

from sluice_gpu import _news

ANSWER = {"state": "queued", "position": 1, "of": 2, "milli": 500, "gpuType": "soft", "reason": {"message": "full"}}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def test_a_change_is_seen():
    before = _news.mark()
    _news.changed()
    now = _news.mark()
    assert now != before
    assert _news.mark() == now


def test_a_waiting_process_is_listed_until_it_leaves_the_queue():
    before = _news.mark()
    _news.waits(ANSWER, "k-1")
    assert _news.mark() != before
    [note] = _news.waiting()
    assert (note["position"], note["of"], note["milli"], note["gpuType"], note["kernelId"]) == (1, 2, 500, "soft", "k-1")
    _news.waits({**ANSWER, "position": 2}, "k-1")
    assert [note["position"] for note in _news.waiting()] == [2]
    _news.waits_no_more()
    assert _news.waiting() == []


def test_the_note_of_a_killed_process_is_ignored(folder):
    child = os.fork()
    if child == 0:
        _news.waits(ANSWER, "k-1")
        os._exit(0)
    os.waitpid(child, 0)
    assert (folder / f"waiting-{child}").exists()
    assert _news.waiting() == []


def test_invalid_notes_are_ignored(folder):
    own = {"pid": os.getpid(), "startTime": 1}
    for number, text in enumerate(("", "[", "[1]", "{}", json.dumps(own), "x" * 100_000)):
        (folder / f"waiting-{number}").write_text(text)
    os.mkfifo(folder / "waiting-7")
    (folder / "waiting-8").symlink_to("/dev/zero")
    (folder / "waiting-9").mkdir()
    assert _news.waiting() == []


def test_notes_without_a_folder_write_no_file_and_raise_no_error(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for folder in ("", "/nowhere"):
        monkeypatch.setenv("SLUICE_RUNTIME_DIR", folder)
        _news.changed()
        _news.waits(ANSWER, None)
        _news.waits_no_more()
        assert list(tmp_path.iterdir()) == []
