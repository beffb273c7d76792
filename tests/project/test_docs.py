"""The documentation: links that lead somewhere, settings as they are in the code, code as it is in files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from headrace.config.connector_config import ConnectorConfig
from headrace.config.unknown_keys import CONNECTOR_PREFIXES, WORKER_DEFAULTS, WORKER_PREFIXES
from headrace.config.worker_config import WorkerConfig
from headrace.connect.config import Config
from headrace.connect.errors import ConfigError
from headrace.connect.partition import SourcePartition
from headrace.connect.setting import Setting
from headrace.connectors.file_stream import FileStreamSourceConfig
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.sqlite_table import SqliteConfig
from headrace.converters.avro_config import AvroConverterConfig
from headrace.converters.json_converter import JsonConverterConfig
from headrace.converters.string_converter import StringConverterConfig
from headrace.discovery.settings import DiscoveryConfig
from headrace.formats.by_name import FORMATS
from headrace.rest.config import RestConfig
from headrace.sources import SourceConfig
from headrace.stores.catalogue import KINDS

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")])
HOMES: dict[type[Config], tuple[str, ...]] = {
    WorkerConfig: ("run-a-worker",),
    ConnectorConfig: ("run-a-worker",),
    FilesConfig: ("read-files", "formats", "names-and-headers", "after-commit", "tracking"),
    FileStreamSourceConfig: ("file-stream",),
    SqliteConfig: ("sqlite",),
    RestConfig: ("rest",),
    DiscoveryConfig: ("discovery",),
    SourceConfig: ("write-a-native-source",),
    JsonConverterConfig: ("converters",),
    AvroConverterConfig: ("converters",),
    StringConverterConfig: ("converters",),
    **{kind.config: ("read-stores",) for kind in KINDS.values()},
}
REFUSED = {
    *WORKER_DEFAULTS,
    *(f"{prefix}*" for prefix in (*WORKER_PREFIXES, *CONNECTOR_PREFIXES)),
}


def settings_of(config: type[Config]) -> list[Setting]:
    """Those that its page tells of: a store's are on the page of stores, but for what addresses say."""
    for kind in KINDS.values():
        if kind.config is config:
            return [*kind.settings()]
    of_stores = {each.name for kind in KINDS.values() for each in kind.settings()}
    return [each for each in config.settings() if each.name not in of_stores]


def tables_of_keys(page: str) -> str:
    """The rows of a page's tables that begin with keys: the first column only, one row a line."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    tables = re.findall(r"^\| (?:key|setting) \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    return "\n".join(row.split(" | ")[0] for table in tables for row in table.splitlines())


def keys_in(page: str) -> set[str]:
    """The keys that a page's tables of settings name."""
    return set(re.findall(r"`([^`]+)`", tables_of_keys(page)))


def anchors_of(text: str) -> set[str]:
    """The anchors that a page's headings have."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path):
    """To a file that is there, and to a heading that the file has."""
    links = re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text())
    dead = [
        (path, anchor)
        for path, anchor in links
        for target in [(page.parent / path) if path else page]
        if not target.exists() or (anchor and anchor not in anchors_of(target.read_text()))
    ]

    assert [] == dead


def test_the_readme_leads_to_every_page():
    """A page that nothing leads to is not read."""
    linked = set(re.findall(r"\]\((docs/[^)#]+)", (ROOT / "README.md").read_text()))

    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} == {
        each for each in linked if each.endswith(".md")
    }


@pytest.mark.parametrize("config", HOMES, ids=lambda config: config.__name__)
def test_every_setting_is_documented(config: type[Config]):
    """In a table of one of its pages."""
    documented = set().union(*map(keys_in, HOMES[config]))

    assert set() == {each.name for each in settings_of(config)} - documented


def test_a_setting_of_files_is_documented_once():
    """On one page, of all those that tell of the connector."""
    keys = [key for page in HOMES[FilesConfig] for key in keys_in(page)]

    assert sorted(set(keys)) == sorted(keys)


@pytest.mark.parametrize("page", sorted({page for pages in HOMES.values() for page in pages}))
def test_every_documented_setting_is_there(page: str):
    """A page names no key that the code does not know."""
    known = {
        each.name
        for config, pages in HOMES.items()
        if page in pages
        for each in settings_of(config)
    }

    assert set() == keys_in(page) - known


@pytest.mark.parametrize("config", HOMES, ids=lambda config: config.__name__)
def test_numbers_and_words_are_documented_as_they_are(config: type[Config]):
    """The second column of a setting's row is the default of the code, where that is a plain value."""
    text = "".join((ROOT / "docs" / f"{page}.md").read_text() for page in HOMES[config])
    plain = {
        each.name: json.dumps(each.default).strip('"')
        for each in settings_of(config)
        if isinstance(each.default, bool | int) or each.default in each.limits.one_of
    }
    told = dict(re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", text, re.MULTILINE))

    assert plain == {name: told.get(name) for name in plain}


@pytest.mark.parametrize(
    "key", ["quote", "header", "names", "escape", "skip.lines", "inferred types"]
)
def test_what_a_csv_file_must_be_to_be_cut_is_told_everywhere(key: str):
    """The setting's text and its page have every condition of the refusal."""
    props = {"files.path": "/x", "topic": "t", "files.format": "csv", "files.split.bytes": "9"}
    with pytest.raises(ConfigError) as caught:
        FilesConfig.parse(props)
    [setting] = [each for each in FilesConfig.settings() if each.name == "files.split.bytes"]
    [row] = re.findall(
        r"^\| CSV \| lines.*$", (ROOT / "docs" / "read-files.md").read_text(), re.MULTILINE
    )

    assert all(key in text for text in (str(caught.value), setting.doc, row))


def test_the_readme_names_every_format():
    """Each has its row, and they are counted right."""
    text = (ROOT / "README.md").read_text()
    rows = re.search(r"^\| format \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    names = {"json lines": "jsonl"}
    told = [row.split(" | ")[0].strip("| ").lower() for row in rows[1].splitlines()] if rows else []

    assert sorted(FORMATS) == sorted(names.get(name, name) for name in told)
    assert 6 == len(FORMATS)
    assert "`files`: six formats" in text


def test_what_the_map_of_the_code_names_is_there():
    """Files and folders in its table are there, a name after a folder in that folder; each package of files is named."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    places = [row.rsplit(" | ", 1)[-1] for row in re.findall(r"^\| (.*) \|$", text, re.MULTILINE)]
    packages = (ROOT / "src/headrace/connectors/files").glob("*/__init__.py")

    assert 20 <= len(places[1:]) <= 25
    assert [] == [path for place in places[1:] for path in missing_in(place)]
    assert [] == [each.parent.name for each in packages if f"{each.parent.name}/" not in text]


def missing_in(place: str) -> list[str]:
    """What one place of the map names and is nowhere: below ``src/headrace``, the root, or the folder named before."""
    folders, missing = [ROOT / "src/headrace", ROOT], list[str]()
    for name in re.findall(r"`([\w./]+)`", place):
        found = [each / name for each in folders if (each / name).exists()]
        if not found:
            missing.append(name)
        for each in found[:1]:
            folders.insert(0, each if each.is_dir() else each.parent)
    return missing


def test_refused_keys_are_those_of_the_code():
    """What is told to be refused is refused, and the other way round."""
    assert keys_in("compatibility") == REFUSED


def test_python_in_the_readme_is_the_examples_own():
    """The lines of the first connector are in its file, word for word."""
    example = (ROOT / "examples" / "first_connector.py").read_text()
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)

    assert [True] == [textwrap.indent(block, "    ") in example for block in blocks]


def test_python_of_the_author_guide_is_the_examples_own():
    """The classes of the page are in the example, word for word, but for the test at its end."""
    example = (ROOT / "examples" / "letters.py").read_text()
    page = (ROOT / "docs" / "write-a-native-source.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)

    assert [*[True] * 4, False] == [block in example for block in blocks]


def test_the_test_of_the_author_guide_runs(tmp_path: Path):
    """As it stands on the page, with the example's folder in the path."""
    page = (ROOT / "docs" / "write-a-native-source.md").read_text()
    (tmp_path / "test_letters.py").write_text(
        re.findall(r"```python\n(.*?)```", page, re.DOTALL)[-1]
    )
    paths = os.pathsep.join([str(ROOT / "examples"), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_letters.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )

    assert 0 == done.returncode, done.stdout


def test_the_example_of_offsets_without_records_prints_what_it_says(tmp_path: Path):
    """All of its lines, one after the other, in a folder of their own."""
    page = (ROOT / "docs" / "offsets-without-records.md").read_text()
    program = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    (said,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )

    assert (said, "") == (done.stdout, done.stderr)


def test_the_author_guide_counts_its_example_right():
    """A whole connector is as small as the page says."""
    lines = len((ROOT / "examples" / "letters.py").read_text().splitlines())

    assert f"of {lines} lines" in (ROOT / "docs" / "write-a-native-source.md").read_text()


def test_imports_of_the_author_guide_are_the_tests_own():
    """Its test has those that it needs."""
    example = (ROOT / "tests" / "examples" / "test_letters.py").read_text().splitlines()
    page = (ROOT / "docs" / "write-a-native-source.md").read_text()
    imports = re.findall(r"^(?:from|import) \w.*$", page, re.MULTILINE)

    assert "from headrace.testing.native_suite import NativeSourceSuite" in imports
    assert set() == set(imports) - set(example)


def test_what_authors_import_is_named_in_their_guide():
    """Every name that is not shown in the example has its line."""
    page = (ROOT / "docs" / "write-a-native-source.md").read_text()

    assert all(
        f"`{name}`" in page
        for name in ("TextKeys", "OffsetEntry", "UNKNOWN_LENGTH", "ValueExtractor")
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_installs_what_is_not_published(page: Path):
    """Extras are installed from the clone."""
    assert "pip install 'headrace" not in page.read_text()


def test_the_offset_that_a_page_asks_for_is_taken():
    """To have a file before the mark read again, a person sets what the page shows."""
    told = re.findall(
        r"set the file's offset to `([^`]+)`", (ROOT / "docs/tracking.md").read_text()
    )
    offsets = {SourcePartition(filename="/in/a"): json.loads(each) for each in told}

    assert [{"recordCount": 0}] == list(offsets.values())
    FilesConnector().validate_offsets({}, offsets)


def test_the_extra_for_testing_has_what_the_suites_import():
    """With what headrace itself needs; whoever installs it can run them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [*project["dependencies"], *project["optional-dependencies"]["testing"]]
    brought = {re.split(r"[\[><=]", each)[0] for each in listed}
    imported = {
        name
        for path in (ROOT / "src/headrace/testing").glob("*.py")
        for name in re.findall(r"^(?:from|import) (\w+)", path.read_text(), re.MULTILINE)
    }
    foreign = imported - sys.stdlib_module_names - {"headrace"}
    packages = packages_distributions()

    assert {"pytest", "kafka"} <= foreign
    assert [] == [each for each in foreign if not brought.intersection(packages[each])]


def test_every_dependency_has_its_reason():
    """Each name in the project's own lists has a row in the page of dependencies."""
    project = (ROOT / "pyproject.toml").read_text()
    named = re.findall(r'^  "([A-Za-z0-9_\[\]-]+)[><=]', project, re.MULTILINE)
    rows = re.findall(
        r"^\| (\S+) \|", (ROOT / "docs" / "dependencies.md").read_text(), re.MULTILINE
    )

    assert set() == set(named) - set(rows)
