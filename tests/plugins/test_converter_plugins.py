"""Converters of authors: where they are found, how they are named, and what a slot makes of them."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.connect.errors import ConfigError
from headrace.connect.record import Header
from headrace.converters import make_converter, make_header_converter
from headrace.herder.answers import PluginKind
from headrace.plugins import PluginConnectorValidator, Plugins, checked_worker, converter_plugins
from plugins.judged import CONNECTOR, WORKER, errors, key, run_spec

SHOUT = """
import pyarrow as pa
import pyarrow.compute as pc
from headrace.connect import Config, setting

class ShoutConfig(Config):
    mark: str = setting(default="!", one_of=("!", "?"), doc="What stands behind it.")

class ShoutConverter:
    config_class = ShoutConfig
    version = "2.1"

    def configure(self, config, *, is_key):
        self.mark = ShoutConfig.parse(config).mark

    def encode(self, topic, schema, values):
        loud = pc.binary_join_element_wise(pc.utf8_upper(values), self.mark, "")
        return pc.cast(loud, pa.binary())

class WhisperHeaderConverter:
    def configure(self, config):
        pass

    def encode_header(self, topic, header):
        return str(header.value).lower().encode()
"""
SHOUT_PATH, WHISPER_PATH = "loudly:ShoutConverter", "loudly:WhisperHeaderConverter"


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugins:
    """A worker's, with a module in ``plugin.modules``, and two entry points of which one is broken."""
    (tmp_path / "loudly.py").write_text(SHOUT, "utf-8")
    monkeypatch.delitem(sys.modules, "loudly", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    points = [
        EntryPoint(name="shout", value=SHOUT_PATH, group=converter_plugins.GROUP),
        EntryPoint(name="lost", value="nowhere.at.all:Converter", group=converter_plugins.GROUP),
    ]
    worker = checked_worker({**WORKER, "plugin.modules": "loudly"})
    return Plugins(worker, lambda group: points if group == converter_plugins.GROUP else [])


@pytest.fixture
def judge(plugins: Plugins) -> PluginConnectorValidator:
    """The validator of that worker."""
    return PluginConnectorValidator(checked_worker(WORKER), "g", plugins=plugins)


@pytest.mark.parametrize("name", ["shout", "Shout", "ShoutConverter", SHOUT_PATH])
def test_a_slot_makes_the_class_that_a_name_stands_for(name: str, judge: PluginConnectorValidator):
    """With the settings behind its role."""
    given = {**CONNECTOR, "value.converter": name, "value.converter.mark": "?"}

    chosen = run_spec(judge, given).value_converter
    made = make_converter(chosen.class_name, chosen.config, is_key=False)

    assert SHOUT_PATH == chosen.class_name
    assert [b"AB?"] == made.encode("t", None, pa.array(["ab"])).to_pylist()


@pytest.mark.parametrize(("name", "text"), [("Shout", b"A!"), ("Whisper", b"a"), ("json", b'"A"')])
def test_a_converter_of_values_does_for_headers_too(
    name: str, text: bytes, judge: PluginConnectorValidator
):
    """And one that is made for headers is asked as such."""
    chosen = run_spec(judge, {**CONNECTOR, "header.converter": name}).header_converter

    made = make_header_converter(chosen.class_name, {**chosen.config, "schemas.enable": "false"})

    assert text == made.encode_header("t", Header("k", "A"))


def test_they_are_listed_with_kind_and_version(plugins: Plugins):
    """One that is broken once, with its reason."""
    listed = [
        each for each in plugins.listed() if each.class_name.startswith(("loudly", "nowhere"))
    ]

    assert [
        (PluginKind.CONVERTER, SHOUT_PATH, "2.1"),
        (PluginKind.CONVERTER, "nowhere.at.all:Converter", None),
        (PluginKind.HEADER_CONVERTER, SHOUT_PATH, "2.1"),
        (PluginKind.HEADER_CONVERTER, WHISPER_PATH, None),
    ] == [(each.kind, each.class_name, each.version) for each in listed]
    assert ["No module named 'nowhere'"] == [
        each.problem.rpartition(": ")[2] for each in listed if each.problem
    ]


def test_its_settings_are_validated_with_its_prefix(judge: PluginConnectorValidator):
    """It is recommended, and shown by where it lies."""
    given = {**CONNECTOR, "value.converter": "shout", "value.converter.mark": "."}
    infos = judge.validate(given)

    assert ["value.converter.mark"] == list(errors(infos))
    checked = key(infos, "value.converter")
    assert (SHOUT_PATH, True) == (checked.value.value, SHOUT_PATH in checked.value.recommended)
    assert ["mark"] == [each.name for each in judge.plugin_settings("ShoutConverter", "[2,3)")]


@pytest.mark.parametrize(
    ("role", "name", "reported"),
    [
        (
            "key",
            "os.path:Class",
            "Class os.path:Class could not be found. Valid ones are: json, string",
        ),
        ("key", "nope", f"boolean, {SHOUT_PATH}."),
        ("header", "nope", f"simple, {SHOUT_PATH}, {WHISPER_PATH}."),
        ("value", "Whisper", "does not implement the Converter interface"),
        (
            "value",
            "lost",
            "nowhere.at.all:Converter could not be loaded: No module named 'nowhere'",
        ),
        ("value", "loudly:ShoutConfig", "Class class loudly:ShoutConfig does not implement"),
    ],
)
def test_what_is_no_converter_is_refused(
    role: str, name: str, reported: str, judge: PluginConnectorValidator
):
    """With the reason, or with what there is."""
    with pytest.raises(ConfigError) as refused:
        run_spec(judge, {**CONNECTOR, f"{role}.converter": name})

    [(wrong, sentence)] = refused.value.problems
    assert (f"{role}.converter", True) == (wrong, reported in sentence)
