"""What a plan finds of what is known, and what it does not ask for."""

from __future__ import annotations

import pytest

from headrace.connectors.files.progress import KnownFiles, Progress, by_file, part, whole
from headrace.connectors.files.tracking.asked import Asked

DONE = {"anchor": 9, "size": 9, "done": True}
BEGUN = {"anchor": 5, "size": 9}


def known() -> KnownFiles:
    """Two files that are done, two that are begun, and one that is split."""
    return by_file(
        {
            whole("/a"): DONE,
            whole("/b"): BEGUN,
            whole("/c"): DONE,
            whole("/d"): BEGUN,
            part("/e", (0, 5)): BEGUN,
        }
    )


def test_what_is_begun_and_not_asked_for_is_told():
    """In order, and nothing that is done."""
    asked = Asked(known())
    assert ["/b", "/d", "/e"] == asked.unfinished()
    found = [asked.get(path) for path in ("/a", "/d", "/new")]

    assert [Progress(entry=DONE), Progress(entry=BEGUN), None] == found
    assert ["/b", "/e"] == asked.unfinished()


def test_when_all_was_asked_for_no_one_looks_again(monkeypatch: pytest.MonkeyPatch):
    """So the plan of a million files goes through them once."""
    files = known()
    asked = Asked(files)
    for path in list(files):
        assert path in asked
        assert asked[path] == files[path]
    monkeypatch.setattr(KnownFiles, "items", None)

    assert [] == asked.unfinished()


@pytest.mark.parametrize("paths", ["aabcd", "abdcd"])
def test_to_ask_twice_for_one_does_not_hide_another(paths: str):
    """As many questions as there are files prove nothing."""
    asked = Asked(known())

    for path in paths:
        assert asked.get(f"/{path}")

    assert not asked.found_all
    assert ["/e"] == asked.unfinished()


def test_of_what_is_hidden_nothing_is_known():
    """It is being cleaned up; another file may lie there."""
    asked = Asked(known())
    asked.hide({"/a"})

    assert Progress() == asked["/a"]
    assert ["/b", "/d", "/e"] == asked.unfinished()
