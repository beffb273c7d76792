"""Which plugins there are, by which names, and what one that is broken does to the others."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import headrace
from headrace.config.aliases import CONNECTORS, UnknownConnectorError, connector_name
from headrace.converters import converter_classes, converter_problems, header_converter_classes
from headrace.herder.answers import PluginKind
from headrace.herder.errors import BadRequestError, NotFoundError, ServerError
from headrace.offsets.target import OffsetTopic
from headrace.plugins import PluginConnectorValidator, Plugins, checked_worker
from headrace.plugins.connector_plugins import GROUP
from headrace.transforms.catalogue import PREDICATE_CLASSES, TRANSFORM_CLASSES
from plugins.judged import CONNECTOR, FILE_STREAM, run_spec, validator

WORKER = {"key.converter": "string", "value.converter": "string"}
GOOD = """
from headrace.connectors.file_stream import FileStreamSourceConnector

class TapConnector(FileStreamSourceConnector):
    version = "3.2"

class NoConnector:
    pass
"""


def plugins(
    monkeypatch: pytest.MonkeyPatch, folder: Path, modules: dict[str, str], *registered: str
) -> Plugins:
    """The plugins of a worker with *modules*, by their text, in ``plugin.modules``, and with entry points."""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text, "utf-8")
        # Each test has modules of its own, and takes them out again.
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(folder)
    worker = checked_worker({**WORKER, "plugin.modules": ",".join(modules)})
    points = [
        EntryPoint(name=name, value=value, group=GROUP)
        for name, _, value in (each.partition("=") for each in registered)
    ]
    return Plugins(worker, lambda group: points if group == GROUP else [])


def test_ours_are_listed_once_and_in_order():
    """By kind, in Kafka Connect's order of kinds, and then by class; each with a version."""
    listed = validator().plugins()

    assert [
        *((PluginKind.SOURCE, name) for name in sorted(map(connector_name, CONNECTORS.values()))),
        *((PluginKind.TRANSFORMATION, name) for name in sorted(TRANSFORM_CLASSES)),
        *((PluginKind.PREDICATE, name) for name in sorted(PREDICATE_CLASSES)),
        *((PluginKind.CONVERTER, path) for path in sorted(converter_classes())),
        *((PluginKind.HEADER_CONVERTER, path) for path in sorted(header_converter_classes())),
    ] == [(each.kind, each.class_name) for each in listed]
    assert {(headrace.__version__, None)} == {(each.version, each.problem) for each in listed}


@pytest.mark.parametrize("path", converter_classes())
def test_a_listed_converter_can_be_named(path: str):
    """By the name in the list."""
    reported = [sentence for _, sentence in converter_problems("value", path, {})]

    assert not any("could not be found" in each for each in reported)


@pytest.mark.parametrize("name", ["nicetap:TapConnector", "TapConnector", "Tap"])
def test_a_class_of_plugin_modules_has_connect_s_names(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its path, its simple name, and that without Connector."""
    found = plugins(monkeypatch, tmp_path, {"nicetap": GOOD})

    assert "TapConnector" == found.connector_class(name).__name__
    [listed] = [each for each in found.listed() if each.class_name == "nicetap:TapConnector"]
    assert ("3.2", None) == (listed.version, listed.problem)


@pytest.mark.parametrize(
    ("body", "reported"),
    [
        (
            "def __init__(self): raise OSError('no disk')",
            "oddtap:Odd could not be created: no disk",
        ),
        ("config_class = None", "oddtap.Odd.config() must return a ConfigDef that is not null."),
        ("@abstractmethod\n    def more(self): ...", "oddtap:Odd: This class is abstract"),
    ],
)
def test_a_class_that_cannot_be_used_is_refused_with_the_reason(
    body: str, reported: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As a request that is wrong; authors write such classes."""
    base = "from headrace.connectors.file_stream import FileStreamSourceConnector as Base"
    text = f"from abc import abstractmethod\n{base}\nclass Odd(Base):\n    {body}\n"
    found = plugins(monkeypatch, tmp_path, {"oddtap": text})
    judge = PluginConnectorValidator(checked_worker(WORKER), "g", plugins=found)

    with pytest.raises(BadRequestError) as refused:
        judge.validate({**CONNECTOR, "connector.class": "oddtap:Odd"})

    assert str(refused.value).startswith(reported)


def test_an_entry_point_is_a_connector_with_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Though plugin.modules does not name its module."""
    point = f"tap={CONNECTORS['file_stream']}"
    found = plugins(monkeypatch, tmp_path, {}, point, "lost=nowhere.at.all:Connector")

    assert "FileStreamSourceConnector" == found.connector_class("tap").__name__
    [broken] = [each for each in found.listed() if each.problem]
    assert "nowhere.at.all:Connector" == broken.class_name


def test_a_broken_plugin_is_listed_with_its_reason_and_harms_no_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Neither those beside it nor the answer."""
    found = plugins(monkeypatch, tmp_path, {"badtap": "raise OSError('no disk')", "welltap": GOOD})

    [broken] = [each for each in found.listed() if each.problem]
    assert ("badtap", "badtap could not be imported: no disk") == (
        broken.class_name,
        broken.problem,
    )
    assert "TapConnector" == found.connector_class("Tap").__name__


def test_only_what_is_allowed_may_be_named_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A module below an allowed package is, and one whose name only begins like it is not."""
    found = plugins(monkeypatch, tmp_path, {"mine": ""})

    assert found.may_load("mine.connectors:Class")
    assert not found.may_load("minefield:Class")
    assert not found.may_load("os.path:Class")


def test_a_class_that_a_module_only_imports_is_not_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its own module was not allowed."""
    (tmp_path / "theirtap.py").write_text(GOOD, "utf-8")
    found = plugins(monkeypatch, tmp_path, {"usertap": "from theirtap import TapConnector"})

    assert "TapConnector" not in str([each.class_name for each in found.listed()])
    with pytest.raises(UnknownConnectorError):
        found.connector_class("theirtap:TapConnector")


def test_an_ambiguous_name_stands_for_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The paths still do."""
    found = plugins(monkeypatch, tmp_path, {"onetap": GOOD, "twotap": GOOD})

    with pytest.raises(UnknownConnectorError, match="which name matches Tap, available"):
        found.connector_class("Tap")
    assert "twotap" == found.connector_class("twotap:TapConnector").__module__


def test_a_request_imports_no_module_that_no_one_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Whatever it asks: the file would tell."""
    found = plugins(monkeypatch, tmp_path, {})
    (tmp_path / "trap.py").write_text("raise SystemExit", "utf-8")
    judge = PluginConnectorValidator(checked_worker(WORKER), "g", plugins=found)

    with pytest.raises(BadRequestError, match=r"plugin\.modules"):
        judge.validate({**CONNECTOR, "connector.class": "trap:Connector"})
    with pytest.raises(NotFoundError):
        judge.plugin_settings("trap:Connector")
    assert "trap" not in sys.modules


def test_the_settings_of_a_connector_come_before_those_of_every_connector():
    """None of them twice."""
    names = [each.name for each in validator().plugin_settings("FileStreamSource")]

    assert ["file", "topic", "batch.size"] == names[:3]
    assert "name" in names[3:]
    assert len(set(names)) == len(names)


def test_the_settings_of_a_converter_are_its_own():
    """Without a prefix, and without those of connectors."""
    names = {each.name for each in validator().plugin_settings("JsonConverter")}

    assert "schemas.enable" in names
    assert "name" not in names


@pytest.mark.parametrize("version", [None, "", "latest", "0.1.0", "[0.1,1.0)", "(,5]"])
def test_a_version_that_is_there_may_be_asked_for(version: str | None):
    """By itself, by a range, or by nothing."""
    assert validator().plugin_settings("FileStreamSource", version)


@pytest.mark.parametrize(
    ("version", "reported"),
    [
        (
            "9.9.9",
            (
                f"Plugin {FILE_STREAM} not found that matches the version range [9.9.9,9.9.9], "
                f"available versions: [{headrace.__version__}]"
            ),
        ),
        (
            "(0.1.0,9]",
            (
                f"Plugin {FILE_STREAM} not found that matches the version range (0.1.0,9], "
                f"available versions: [{headrace.__version__}]"
            ),
        ),
        ("[x", "Invalid version specification: [x"),
        ("(1)", "Invalid version specification: (1)"),
        ("[2,1]", "Invalid version specification: [2,1]"),
    ],
)
def test_another_version_is_refused(version: str, reported: str):
    """In Kafka Connect's words."""
    with pytest.raises(BadRequestError) as refused:
        validator().plugin_settings("FileStreamSource", version)

    assert reported == str(refused.value)


def test_what_is_no_plugin_has_no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Unknown, or a class that is something else."""
    found = plugins(monkeypatch, tmp_path, {"sometap": GOOD})
    judge = PluginConnectorValidator(checked_worker(WORKER), "g", plugins=found)

    with pytest.raises(NotFoundError, match=r"^Unknown plugin nope\.$"):
        judge.plugin_settings("nope")
    with pytest.raises(ServerError, match=r"^Instantiation error$"):
        judge.plugin_settings("sometap:NoConnector")


def test_each_start_has_a_connector_of_its_own(caplog: pytest.LogCaptureFixture):
    """And what has no effect is told once."""
    judge = validator()
    given = {**CONNECTOR, "connector.class": FILE_STREAM, "taks.max": "2"}

    first, second = run_spec(judge, given), run_spec(judge, given)

    assert first.connector is not second.connector
    assert ("c", 1, OffsetTopic(name="g-offsets")) == (first.name, first.max_tasks, first.offsets)
    assert 1 == len([each for each in caplog.messages if "taks.max" in each])
