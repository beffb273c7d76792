"""Transformations and predicates of authors: where they are found, how they are named, what a slot makes of them."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from headrace.connect.errors import ConfigError
from headrace.connect.partition import SourcePartition
from headrace.connect.record import SourceRecord
from headrace.herder.answers import PluginKind
from headrace.herder.config_masking import Passwords
from headrace.herder.errors import BadRequestError, NotFoundError
from headrace.plugins import PluginConnectorValidator, Plugins, checked_worker
from headrace.task.chain import make_stage
from headrace.transforms.catalogue import PREDICATE_CLASSES, TRANSFORM_CLASSES
from headrace.worker.data_plane import foreign_modules
from plugins.judged import CONNECTOR, WORKER, errors, key, run_spec

MURMUR = """
from abc import ABC, abstractmethod
from dataclasses import replace
from headrace.connect import Config, Password, setting

class MurmurConfig(Config):
    mark: str = setting(default=".", one_of=(".", "!"), doc="What stands behind it.")
    word: Password | None = setting(default=None, doc="What opens it.")

class MurmurTransform:
    config_class = MurmurConfig
    version = "2.1"

    def configure(self, config):
        self.mark = MurmurConfig.parse(config).mark

    def apply(self, record):
        return replace(record, value=record.value.lower() + self.mark)

class AsItIs:
    def configure(self, config):
        pass

    def apply(self, record):
        return record

class Louder(AsItIs, ABC):
    @abstractmethod
    def much(self): ...

class Needy(AsItIs):
    def __init__(self, need): ...

class IsLoudPredicate:
    def configure(self, config):
        self.least = int(config.get("least", "1"))

    def test(self, record):
        return record.value[:self.least].isupper()
"""
MURMUR_PATH, AS_IT_IS, IS_LOUD = (
    "murmurs:MurmurTransform",
    "murmurs:AsItIs",
    "murmurs:IsLoudPredicate",
)
NEEDY = "murmurs:Needy"
LOST = "nowhere.at.all:Transform"


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugins:
    """A worker's, with a module in ``plugin.modules``, and entry points of which one is broken."""
    (tmp_path / "murmurs.py").write_text(MURMUR, "utf-8")
    monkeypatch.delitem(sys.modules, "murmurs", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    points = [
        EntryPoint(name="hush", value=MURMUR_PATH, group="headrace.transforms"),
        EntryPoint(name="lost", value=LOST, group="headrace.transforms"),
        EntryPoint(name="noisy", value=IS_LOUD, group="headrace.predicates"),
    ]
    worker = checked_worker({**WORKER, "plugin.modules": "murmurs"})
    return Plugins(worker, lambda group: [each for each in points if each.group == group])


@pytest.fixture
def judge(plugins: Plugins) -> PluginConnectorValidator:
    """The validator of that worker."""
    return PluginConnectorValidator(checked_worker(WORKER), "g", plugins=plugins)


def chain(transform: str, predicate: str | None = None, **settings: str) -> dict[str, str]:
    """A connector with one transformation ``a``, and its settings."""
    given = {**CONNECTOR, "transforms": "a", "transforms.a.type": transform}
    if predicate is not None:
        given |= {"transforms.a.predicate": "p", "predicates": "p", "predicates.p.type": predicate}
    return given | {f"transforms.a.{name}": value for name, value in settings.items()}


def record(value: str) -> SourceRecord:
    """One with that value."""
    return SourceRecord(
        topic="t", value=value, source_partition=SourcePartition(f="f"), source_offset={"o": 1}
    )


@pytest.mark.parametrize("transform", ["hush", "Murmur", "MurmurTransform", MURMUR_PATH])
@pytest.mark.parametrize("predicate", ["noisy", "IsLoud", "IsLoudPredicate", IS_LOUD])
def test_a_slot_makes_the_classes_that_names_stand_for(
    transform: str, predicate: str, judge: PluginConnectorValidator
):
    """With the settings behind their aliases; their modules are shipped to it."""
    given = chain(transform, predicate, mark="!") | {"predicates.p.least": "2"}

    spec = run_spec(judge, given)
    stage = make_stage(spec.transforms[0])

    assert {"murmurs"} == foreign_modules(
        spec.connector, (each.class_name for each in spec.plugins)
    )
    changed = [stage.changed(record(each)) for each in ("AB", "Ab")]
    assert ["ab!", "Ab"] == [each.value for each in changed if each is not None]


def test_they_are_listed_with_kind_and_version(plugins: Plugins):
    """One that is broken once, with its reason; what is no plugin by itself is left out."""
    theirs = [each for each in plugins.listed() if each.class_name.startswith(("mur", "nowh"))]

    assert [
        (PluginKind.TRANSFORMATION, AS_IT_IS, None),
        (PluginKind.TRANSFORMATION, MURMUR_PATH, "2.1"),
        (PluginKind.TRANSFORMATION, LOST, None),
        (PluginKind.PREDICATE, IS_LOUD, None),
    ] == [(each.kind, each.class_name, each.version) for each in theirs]
    assert ["No module named 'nowhere'"] == [
        each.problem.rpartition(": ")[2] for each in theirs if each.problem
    ]


def test_settings_are_validated_and_shown_with_the_prefix_of_the_alias(
    judge: PluginConnectorValidator,
):
    """The class is shown by where it lies."""
    infos = judge.validate(chain("hush", mark="?"))

    assert ["transforms.a.mark"] == list(errors(infos))
    assert MURMUR_PATH == key(infos, "transforms.a.type").value.value


def test_all_that_can_be_used_are_recommended(judge: PluginConnectorValidator):
    """Ours by Java's names, in Kafka Connect's order."""
    infos = judge.validate(chain("hush", "noisy"))

    recommended = {
        name: [*key(infos, f"{name}.type").value.recommended]
        for name in ("transforms.a", "predicates.p")
    }
    assert {
        "transforms.a": sorted([*TRANSFORM_CLASSES, MURMUR_PATH, AS_IT_IS]),
        "predicates.p": sorted([*PREDICATE_CLASSES, IS_LOUD]),
    } == recommended


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("hush", ["mark", "word"]),
        (AS_IT_IS, []),
        ("IsLoud", []),
        ("HoistField$Key", ["field"]),
        ("org.apache.kafka.connect.transforms.predicates.HasHeaderKey", ["name"]),
    ],
)
def test_the_settings_of_one_can_be_asked_for(
    name: str, settings: list[str], judge: PluginConnectorValidator
):
    """Its own, and no others."""
    assert settings == [each.name for each in judge.plugin_settings(name)]


def test_a_version_may_be_asked_for(judge: PluginConnectorValidator):
    """Of the settings, and of a connector's class; another one is refused in Kafka Connect's words."""
    versions = {"plugin.version": "[2,3)"}
    assert judge.plugin_settings("hush", "[2,3)")
    assert run_spec(judge, chain("hush", **versions))

    with pytest.raises(BadRequestError, match="version range"):
        judge.plugin_settings("hush", "3")
    found = errors(
        judge.validate(chain("hush", "noisy", **versions) | {"predicates.p.plugin.version": "1"})
    )
    [reported] = found.pop("predicates.p.plugin.version")
    # At the class, too.
    assert {"predicates.p.type": [reported]} == found
    assert reported.endswith("matches the version range [1,1], available versions: [undefined]")


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("nope", "Class nope could not be found."),
        ("os.path:Class", "Class os.path:Class could not be found."),
        ("lost", f"{LOST} could not be loaded: No module named 'nowhere'"),
        (IS_LOUD, f"Class class {IS_LOUD} does not implement the Transformation interface"),
        ("murmurs:Louder", "This class is abstract and cannot be created."),
        (
            NEEDY,
            "Could not find a public no-argument constructor for class: murmurs:Needy",
        ),
        ("murmurs:Nobody", "murmurs:Nobody could not be loaded"),
        (
            "org.apache.kafka.connect.transforms.HoistField",
            (
                "This class is abstract and cannot be created. Did you mean "
                "org.apache.kafka.connect.transforms.HoistField$Key, "
                "org.apache.kafka.connect.transforms.HoistField$Value?"
            ),
        ),
    ],
)
def test_what_is_no_transformation_is_refused(
    name: str, reported: str, judge: PluginConnectorValidator
):
    """With the reason, at the key that names it."""
    with pytest.raises(ConfigError) as refused:
        run_spec(judge, chain(name))

    [(wrong, sentence)] = refused.value.problems
    assert "transforms.a.type" == wrong
    assert sentence.removeprefix(f"Invalid value {name} for configuration {wrong}: ").startswith(
        reported
    )


def test_a_request_imports_no_module_that_no_one_allowed(
    plugins: Plugins, judge: PluginConnectorValidator, tmp_path: Path
):
    """Whatever it asks: the file would tell."""
    (tmp_path / "trapped.py").write_text("raise SystemExit", "utf-8")

    assert errors(judge.validate(chain("trapped:T", "trapped:P")))
    with pytest.raises(NotFoundError):
        judge.plugin_settings("trapped:T")
    assert "trapped" not in sys.modules


def test_a_setting_that_its_class_does_not_know_is_reported(
    judge: PluginConnectorValidator, caplog: pytest.LogCaptureFixture
):
    """Unless the class tells of no settings at all."""
    run_spec(judge, chain("hush", "noisy", marc="!") | {"predicates.p.least": "2"})

    reported = [each for each in caplog.messages if "isn't a known config" in each]
    assert ["transforms.a.marc" in each for each in reported] == [True]


def test_a_password_of_a_transformation_is_hidden(judge: PluginConnectorValidator):
    """In answers and in all that the connector's tasks tell, though its name does not say that it is one."""
    given = chain("hush", word="open-sesame")

    spec = run_spec(judge, given)
    shown = Passwords(judge, are_masked=True).masked(given, connector=given)

    assert "open-sesame" not in spec.secrets.masked("It is open-sesame.")
    assert {**given, "transforms.a.word": "[hidden]"} == shown
