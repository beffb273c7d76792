"""What the pages of the documentation show is what their reader sees."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_examples import ROOT, PageFile, Reader, Typed, matches, steps

from headrace.broker import Broker

PAGES = sorted(
    path.name for path in (ROOT / "docs").glob("*.md") if "```console\n" in path.read_text()
)
PAGE = """\
# A page

Another page has the rest. Say that `in/a.jsonl` has two lines,
so that `a.json` reads both:

```text
1
2
```

Nothing to write, though `b.json` is named.

```json
{}
```

Now it is done:

```console
$ cat in/a.jsonl
1
2

$ true
```
"""


def test_a_block_is_a_file_where_the_sentence_above_names_one():
    """The first one that it names; commands are told apart, each with what it prints."""
    assert [
        PageFile(name="in/a.jsonl", content="1\n2\n"),
        Typed(command="cat in/a.jsonl", printed="1\n2"),
        Typed(command="true", printed=""),
    ] == list(steps(PAGE))


def test_the_ellipsis_stands_for_anything_and_nothing_else_does():
    """Also for several lines."""
    assert matches("a … z", "a b\nc z\n")
    assert not matches("a.z", "abz")
    assert not matches("a", "a\nb")


@pytest.mark.parametrize(
    "wrong", [PAGE.replace("\n2\n\n$", "\n3\n\n$"), PAGE.replace("$ true", "$ false")]
)
def test_a_page_that_shows_something_else_fails(wrong: str, tmp_path: Path):
    """So does one whose command fails unseen."""
    with pytest.raises(AssertionError, match="The page shows"):
        Reader(folder=tmp_path, bootstrap="").follows(wrong)


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_its_reader_sees(page: str, tmp_path: Path):
    """With a broker that is new, as the reader's is."""
    folder = tmp_path / "reader"
    folder.mkdir()
    with Broker(tmp_path / "broker") as broker:
        reader = Reader(folder=folder, bootstrap=broker.bootstrap)

        assert reader.follows((ROOT / "docs" / page).read_text())
