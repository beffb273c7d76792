"""Passwords in answers and requests, where the worker masks them and where it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest

from headrace.connect.setting import Setting, SettingType
from headrace.herder.answers import ConfigInfos
from headrace.herder.config_masking import Passwords
from headrace.herder.errors import BadRequestError
from headrace.herder.protocol import Herder
from headrace.herder.requests import CreateRequest
from herder.stage import Judge, Stage, config
from waiting import until

GIVEN = config(pin="p1", topic="t", **{"sasl.password": "p2", "note": "[hidden]"})
SHOWN = {**GIVEN, "pin": "[hidden]", "sasl.password": "[hidden]"}


class Strict(Judge):
    """``pin`` is a password."""

    asked: Mapping[str, str | None] | None = None
    meanwhile: Callable[[], object] | None = None

    def plugin_settings(self, name: str, version: str | None = None) -> Sequence[Setting]:
        """As other judges, and the pin."""
        pin = Setting(name="pin", type=SettingType.PASSWORD, doc="A pin.")
        return [*super().plugin_settings(name, version), pin]

    def validate(self, config: Mapping[str, str | None], plugin: str | None = None) -> ConfigInfos:
        """Remember what was asked; what happens *meanwhile* happens once."""
        self.asked = config
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super().validate(config, plugin)


@dataclass
class Masking:
    """A herder that masks passwords."""

    stage: Stage
    judge: Strict
    herder: Herder

    def stored(self) -> Mapping[str, str | None]:
        """What the store has."""
        found = self.stage.configs.connector("c")
        assert found is not None
        return found.config


@pytest.fixture
def masking() -> Iterator[Masking]:
    """With a connector ``c``."""
    judge = Strict()
    stage = Stage(judge=judge, masks_passwords=True)
    with stage.herder() as herder:
        herder.create(CreateRequest(name="c", config=GIVEN))
        yield Masking(stage, judge, herder)


def test_passwords_are_masked_in_all_answers(masking: Masking):
    """Those that are defined so and those that are called so; what is stored and runs is what was given."""
    named = {**SHOWN, "name": "c"}
    until(lambda: masking.herder.tasks("c"))

    assert named == masking.herder.info("c").config
    assert named == masking.herder.patch_config("c", {"topic": "t"}).info.config
    until(lambda: masking.herder.tasks("c"))
    assert {**named, "task.class": "x:T"} == masking.herder.tasks("c")[0].config
    assert {**GIVEN, "name": "c"} == masking.stored()
    assert "p1" == masking.stage.the_run().spec.props["pin"]


def test_a_masked_password_that_comes_back_keeps_the_stored_one(masking: Masking):
    """In the whole configuration as in a part of it, beside a password that is new."""
    masking.herder.put_config("c", {**SHOWN, "topic": "u", "sasl.password": "p3"})
    assert {**GIVEN, "name": "c", "topic": "u", "sasl.password": "p3"} == masking.stored()

    masking.herder.patch_config("c", {"pin": "[hidden]", "topic": None})
    assert ("p1", False) == (masking.stored()["pin"], "topic" in masking.stored())


def test_a_put_that_keeps_passwords_never_answers_that_the_connector_is_unknown(masking: Masking):
    """PUT creates: of a connector that is deleted meanwhile there is only no password to keep."""
    masking.judge.meanwhile = lambda: masking.herder.delete("c")

    with pytest.raises(BadRequestError, match="no value yet that could be kept"):
        masking.herder.put_config("c", SHOWN)


def test_a_put_keeps_the_passwords_that_are_stored_at_its_end(masking: Masking):
    """Those of a connector that was changed meanwhile."""
    changed = {**GIVEN, "pin": "p9"}
    masking.judge.meanwhile = lambda: masking.herder.put_config("c", changed)

    masking.herder.put_config("c", SHOWN)

    assert {**changed, "name": "c"} == masking.stored()


def test_a_validation_sees_the_stored_password(masking: Masking):
    """Where there is one."""
    masking.herder.validate("x", {**SHOWN, "name": "c", "other.password": "[hidden]"})

    assert masking.judge.asked == {**GIVEN, "name": "c", "other.password": "[hidden]"}


def test_there_must_be_a_password_to_keep(masking: Masking):
    """Nobody's password is [hidden]."""
    told = "Invalid value [hidden] for configuration pin: the connector has no value yet"
    for act in (
        lambda: masking.herder.create(CreateRequest(name="d", config=SHOWN)),
        lambda: masking.herder.put_config("d", SHOWN),
    ):
        with pytest.raises(BadRequestError) as refused:
            act()
        assert told in str(refused.value)


def test_of_an_unknown_class_everything_may_be_a_password():
    """Its module may be gone, and with it who knows."""
    given = {"name": "c", "connector.class": "lost", "tasks.max": "1", "pin": "p1"}
    masked = Passwords(Judge(), are_masked=True).masked(given, connector=given)

    assert {**given, "pin": "[hidden]"} == masked


def test_nothing_is_masked_unless_the_worker_says_so():
    """As in Kafka Connect, whose tools read, edit and put back."""
    stage = Stage(judge=Strict())
    with stage.herder() as herder:
        herder.create(CreateRequest(name="c", config=GIVEN))
        assert {**GIVEN, "name": "c"} == herder.info("c").config
        herder.put_config("c", SHOWN)
        assert {**SHOWN, "name": "c"} == herder.info("c").config
