"""Settings and configurations."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from headrace.connect.config import Config, Problem, setting, under
from headrace.connect.errors import ConfigError
from headrace.connect.setting import Password, Setting, SettingType


class Example(Config):
    """One setting of every type."""

    path: str = setting("example.path", doc="Where.", importance="high", non_empty=True)
    seconds: float = setting("example.seconds", default=5.0, at_least=0.1, doc="How often.")
    count: int = setting("example.count", default=1, at_least=1, at_most=9, doc="How many.")
    large: int = setting(kind=SettingType.LONG, default=0, doc="Of 64 bits.")
    short: int = setting(kind=SettingType.SHORT, default=0, doc="Of 16 bits.")
    keep: bool = setting(default=True, doc="Whether.")
    names: tuple[str, ...] = setting("example.names", default=(), doc="Which.")
    places: tuple[str, ...] = setting(default=("a",), doc="At least one.", non_empty=True)
    form: Literal["a", "b"] = setting(default="a", doc="One of two.")
    loud: str = setting(default="A", one_of=("A", "B"), ignore_case=True, doc="Either case.")
    secret: Password | None = setting(default=None, doc="Not to be shown.", valid=lambda _: "Weak")

    def check(self) -> Iterator[Problem]:
        """A rule across two settings."""
        if self.count > len(self.names) > 0:
            yield "example.count", "There are fewer names."


def test_defaults_fill_what_is_not_given():
    """Only what is required has to be given."""
    assert Example(path="/a") == Example.parse({"example.path": "/a"})


def test_every_type_is_read():
    """Text becomes values of the settings' types, white space around it does not count."""
    parsed = Example.parse(
        {
            "example.path": " /a ",
            "example.seconds": "1e1",
            "example.count": " 2",
            "large": "-9223372036854775808",
            "short": "+32767",
            "keep": "FALSE",
            "example.names": "a , b,c",
            "form": "b",
            "loud": "b",
        }
    )
    expected = Example(
        path="/a",
        seconds=10.0,
        count=2,
        large=-(2**63),
        short=32767,
        keep=False,
        names=("a", "b", "c"),
        form="b",
        loud="b",
    )
    assert expected == parsed


@pytest.mark.parametrize(
    ("key", "text", "complaint"),
    [
        ("example.count", "many", "Not a number of type INT"),
        ("example.count", "1.0", "Not a number of type INT"),
        ("example.count", "1_0", "Not a number of type INT"),
        ("example.count", "2147483648", "Not a number of type INT"),
        ("large", "9223372036854775808", "Not a number of type LONG"),
        ("short", "32768", "Not a number of type SHORT"),
        ("example.seconds", "NaN", "Not a number of type DOUBLE"),
        ("example.seconds", "", "Not a number of type DOUBLE"),
        ("keep", "yes", "Expected value to be either true or false"),
        ("example.count", "0", "Value must be at least 1"),
        ("example.count", "10", "Value must be no more than 9"),
        ("example.seconds", "0", "Value must be at least 0.1"),
        ("form", "c", "String must be one of: a, b"),
        ("loud", "c", "String must be one of (case insensitive): A, B"),
        ("example.path", " ", "String must be non-empty"),
    ],
)
def test_bad_values_are_refused_in_kafkas_words(key: str, text: str, complaint: str):
    """A bad value is named with its key and what is wrong."""
    reported = f"Invalid value {text.strip()} for configuration {key}: {complaint}"
    assert ((key, reported),) == Example.problems({"example.path": "/a", key: text})


def test_texts_are_trimmed_as_in_java():
    """Control characters go, other white space than the space stays."""
    assert "\u00a0a\u2003" == Example.parse({"example.path": "\x01\n \u00a0a\u2003\t"}).path


def test_all_problems_come_at_once():
    """One look shows everything that is wrong, in the order of declaration."""
    with pytest.raises(ConfigError) as caught:
        Example.parse({"example.count": "x", "keep": "x"}, where="example.json")
    keys = [key for key, _ in caught.value.problems]
    assert ["example.path", "example.count", "keep"] == keys
    missing = 'Missing required configuration "example.path" which has no default value.'
    assert missing in str(caught.value)
    assert str(caught.value).startswith("example.json has 3 problems:")


def test_rules_across_settings_are_looked_at():
    """What no setting can know by itself is a problem, too."""
    problems = Example.problems({"example.path": "/a", "example.count": "2", "example.names": "a"})
    assert (("example.count", "There are fewer names."),) == problems


def test_secrets_are_never_shown():
    """Neither errors nor texts of a configuration show a password."""
    props = {"example.path": "/a", "secret": "hunter2"}
    reported = "Invalid value [hidden] for configuration secret: Weak"
    assert (("secret", reported),) == Example.problems(props)
    config = Example(path="/a", secret=Password("hunter2"), originals=props)
    assert "hunter2" not in f"{config} {config!r} {config.secret}"


def test_unknown_keys_are_kept_aside():
    """Keys without a setting are no problem, can be had, and do not count when comparing."""
    parsed = Example.parse({"example.path": "/a", "other.x": "1", "other.": "2"})
    assert {"x": "1"} == parsed.under("other.")
    assert Example(path="/a") == parsed


def test_configurations_are_values():
    """A configuration cannot change, can be a key, and survives pickling."""
    config = Example.parse({"example.path": "/a"})
    assert config == pickle.loads(pickle.dumps(config))
    assert hash(config) == hash(Example(path="/a"))
    changeable: Any = config
    with pytest.raises(AttributeError):
        changeable.path = "/b"


def test_settings_tell_all_there_is_to_know():
    """The metadata of a setting is what was declared, with the names filled in."""
    path, seconds, *_ = Example.settings()
    assert path.required
    assert ("example.path", SettingType.STRING, "high") == (path.name, path.type, path.importance)
    assert ("example.seconds", 5.0, -1) == (seconds.display_name, seconds.default, seconds.order)
    assert all(isinstance(each, Setting) and each.doc for each in Example.settings())


def test_a_class_below_inherits_settings():
    """A configuration may extend another."""

    class More(Example):
        """One more setting."""

        extra: str = setting(default="x", doc="More.")

    assert "x" == More.parse({"example.path": "/a"}).extra
    assert [*Example.settings()] == [*More.settings()][: len(Example.settings())]


def test_an_attribute_without_setting_is_a_programming_error():
    """A configuration cannot have attributes that no key fills."""

    class Wrong(Config):
        """Lacks a declaration."""

        path: str

    with pytest.raises(TypeError, match=r"Wrong\.path must be declared with setting"):
        Wrong.settings()


def test_under_cuts_the_prefix():
    """Only keys that go on after the prefix are taken."""
    assert {"a": "1", "b.c": "2"} == under({"p.a": "1", "p.b.c": "2", "p.": "3", "q": "4"}, "p.")


@pytest.mark.parametrize("given", ["", "  ", "a,,b", ","])
def test_a_list_that_must_hold_something_does(given: str) -> None:
    """Otherwise nothing would be done, and nothing said."""
    reported = f"Invalid value {given.strip()} for configuration places: String must be non-empty"

    assert (("places", reported),) == Example.problems({"example.path": "/a", "places": given})
