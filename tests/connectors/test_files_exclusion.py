"""Names that are left out: of files that are being written, and of marks of other programs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from connectors.files_steps import Steps, names_of
from connectors.test_files_store_selection import OBJECT, decided
from headrace.connect import ConfigError
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.selecting.exclusion import DEFAULT_EXCLUDED, Exclusion

DEFAULT = Exclusion(globs=DEFAULT_EXCLUDED)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files that are read, that are being written, and that are marks; and folders of the same kinds."""
    below = ("_temporary/0", "in")
    for name in ("a.txt", "b.txt.tmp", "_SUCCESS", *(f"{each}/c.txt" for each in below)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1\n")
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        *("a.jsonl.tmp", "a.temp", "a.part", "a.partial", "a.filepart", "a.crdownload"),
        *("a._COPYING_", "a.jsonl~", "_SUCCESS", "_committed_17", "_started_17", "_temporary"),
        *("_metadata", "_common_metadata", "_spark_metadata", "_delta_log"),
    ],
)
def test_usual_names_are_left_out(name: str) -> None:
    """By the globs of the setting's default; the reason has both."""
    reason = DEFAULT.reason((name,))

    assert reason is not None
    assert name in reason
    assert "files.exclude" in reason


@pytest.mark.parametrize("name", ["a.jsonl", "part-0", "tmp", "_a.jsonl", "a.tmp.jsonl", "SUCCESS"])
def test_others_are_not(name: str) -> None:
    """Not by their beginning, and not by what is in their middle."""
    assert DEFAULT.reason((name,)) is None


@pytest.mark.parametrize(
    ("pattern", "glob", "counts"),
    [
        ("*.tmp", "*.tmp", False),
        ("a-*.tmp", "*.tmp", False),
        ("a.tmp", "*.tmp", False),
        ("_[Ss]UCCESS*", "_*", False),
        ("*", "*.tmp", True),
        ("*.tmp", "?.tmp", True),
        ("a*", "ab*", True),
        ("**", "*~", True),
    ],
)
def test_a_glob_does_not_count_where_it_would_leave_nothing(
    pattern: str,
    glob: str,
    counts: bool,  # noqa: FBT001
) -> None:
    """Whoever writes the one pattern means just these files."""
    assert ((glob,) if counts else ()) == Exclusion(globs=(glob,)).beside([pattern]).globs


@pytest.mark.parametrize(
    ("path", "more", "expected"),
    [
        ("", {}, ["a.txt"]),
        ("", {"files_recursive": "true"}, ["a.txt", "c.txt"]),
        ("", {"files_exclude": "a.*"}, []),
        ("", {"files_exclude": "none,a.*,_*"}, ["b.txt.tmp"]),
        ("", {"files_exclude": "none"}, ["_SUCCESS", "a.txt", "b.txt.tmp"]),
        ("**/*.txt", {}, ["a.txt", "c.txt"]),
        ("**/_temporary/**/*.txt", {}, ["c.txt"]),
        ("_temporary", {"files_recursive": "true"}, ["c.txt"]),
        ("*.tmp", {}, ["b.txt.tmp"]),
        ("b.txt.tmp", {}, ["b.txt.tmp"]),
        ("_SUCCESS", {}, ["_SUCCESS"]),
        ("*", {"files_exclude": ""}, ["_SUCCESS", "a.txt", "b.txt.tmp"]),
    ],
)
def test_on_disk_what_is_named_is_read(
    folder: Path, path: str, more: dict[str, str], expected: list[str]
) -> None:
    """And of what is not, nothing in a folder that is left out either."""
    assert expected == names_of(Steps(folder / path, files_format="lines", **more).plan())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in/", ["in/a.txt"]),
        ("in/_SUC", []),
        ("in/_SUCCESS", ["in/_SUCCESS"]),
        ("in/b.txt", []),
        ("in/b.txt.tmp", ["in/b.txt.tmp"]),
        ("in/_temporary", ["in/_temporary/0/c.txt"]),
        ("in/_temporary/", ["in/_temporary/0/c.txt"]),
        ("in/*.tmp", ["in/b.txt.tmp"]),
        ("in/*/0/*", []),
        ("in/_temporary/*/*", ["in/_temporary/0/c.txt"]),
        ("in/**", ["in/a.txt"]),
    ],
)
def test_in_a_store_it_is_the_same(text: str, expected: list[str]) -> None:
    """A text that a key only begins with does not name it."""
    keys = ("in/_SUCCESS", "in/_temporary/0/c.txt", "in/a.txt", "in/b.txt.tmp")
    objects = [replace(OBJECT, key=key) for key in keys]

    found = decided(*objects, path=f"s3://b/{text}", files_format="lines", files_recursive="true")

    assert [f"s3://b/{each}" for each in expected] == list(found)


def test_explain_tells_which_glob_it_was(folder: Path) -> None:
    """Of files and of folders."""
    rows = Steps(folder, files_format="lines", files_recursive="true").explained()

    assert "matches *.tmp of files.exclude" in str(rows["b.txt.tmp"].reason)
    assert "matches _temporary of files.exclude" in str(rows["_temporary"].reason)
    assert not any(rows[name].fails for name in ("b.txt.tmp", "_SUCCESS"))


@pytest.mark.parametrize(
    ("value", "words"), [("a,b/*", "cannot hold a slash"), ("*.bad,none", "comes first")]
)
def test_globs_that_cannot_be_meant_are_refused(value: str, words: str) -> None:
    """They would match nothing, or not what is expected."""
    with pytest.raises(ConfigError, match=words):
        FilesConfig.parse({"files.path": "/x", "topic": "t", "files.exclude": value})
