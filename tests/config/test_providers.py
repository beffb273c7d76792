"""What providers find, what they refuse, and that no sentence holds a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from headrace.config.providers import (
    DirectoryProvider,
    EnvironmentProvider,
    FileProvider,
    LookupFailedError,
    Resolution,
    provider_problems,
    providers_of,
    resolution,
)

CANARY = "canary in the mine"
JAVA = "org.apache.kafka.common.config.provider"


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A properties file with a secret."""
    file = tmp_path / "allowed" / "secrets.properties"
    file.parent.mkdir()
    file.write_text(f"password={CANARY}\nempty=\n", "utf-8")
    return file


def resolved(config: Mapping[str, str | None], **environment: str) -> Resolution:
    """*config* with a provider ``env`` of *environment*."""
    return resolution(config, {"env": EnvironmentProvider(environment=environment)})


def test_what_is_secret_is_looked_for_once():
    """A configuration of a hundred thousand keys may have as many problems."""

    class Counted(dict[str, str | None]):
        asked = 0

        def __getitem__(self, key: str) -> str | None:
            Counted.asked += 1
            return super().__getitem__(key)

    found = Resolution(given=Counted(a="${env:A}", b="c"), resolved={"a": "canary", "b": "c"})

    assert ["a ${env:A}"] * 3 == [found.masked("a canary") for _ in range(3)]
    assert Counted.asked == len(found.given)


def test_placeholders_are_replaced_wherever_they_are():
    """Several in a value, too; what no provider is named in stays, and null stays null."""
    given = {"a": "x${env:A}y${env:B}", "b": "${topic}-${other:a:b}", "c": None}

    found = resolved(given, A="1", B="${env:A}")

    assert {"a": "x1y${env:A}", "b": "${topic}-${other:a:b}", "c": None} == found.resolved
    assert given == found.given
    assert ("c",) == found.nulls()
    assert () == found.problems


def test_what_is_not_there_is_a_problem_of_its_key():
    """Kafka Connect would take the placeholder for the value."""
    found = resolved({"a": "${env:LOST}", "b": "${env:A}"}, A="1")

    assert (
        ("a", "a could not be resolved: the worker's environment has no variable LOST."),
    ) == found.problems
    assert {"a": "${env:LOST}", "b": "1"} == found.resolved


def test_files_are_listed_though_nothing_is_found_in_them(secrets: Path):
    """Somebody may watch them; a variable is in none."""
    found = resolution(
        {
            "a": f"${{file:{secrets}:password}}",
            "b": f"${{directory:{secrets.parent}:lost}}",
            "c": "${env:A}",
        },
        {
            "file": FileProvider(),
            "directory": DirectoryProvider(),
            "env": EnvironmentProvider(environment={"A": "1"}),
        },
    )

    assert {secrets, secrets.parent / "lost"} == found.files


def test_a_sentence_shows_the_placeholder():
    """In place of all that was put in, with and without white space around it."""
    found = resolved({"a": "user:${env:A}"}, A=f" {CANARY}\n")

    assert "no: ${env:A} or user:${env:A}" == found.masked(f"no: {CANARY} or user: {CANARY}\n")
    assert CANARY not in repr(found)


def test_a_file_s_keys_are_found(secrets: Path):
    """In Java's form; an empty value is one."""
    provider = FileProvider(allowed=(str(secrets.parent),))

    assert CANARY == provider.value(str(secrets), "password")
    assert "" == provider.value(str(secrets), "empty")


def test_a_directory_s_files_are_values(secrets: Path):
    """With all that is in them."""
    provider = DirectoryProvider(allowed=(str(secrets.parent),))

    assert f"password={CANARY}\nempty=\n" == provider.value(str(secrets.parent), secrets.name)


def test_nothing_outside_the_allowed_paths_is_read(secrets: Path, tmp_path: Path):
    """Not by dots, not by links, and not beside a path of the same beginning."""
    outside = tmp_path / "allowed-too"
    outside.mkdir()
    (outside / "x").write_text("password=x", "utf-8")
    (secrets.parent / "link").symlink_to(outside / "x")
    allowed = (str(secrets.parent),)
    for path in (
        outside / "x",
        secrets.parent / ".." / "allowed-too" / "x",
        secrets.parent / "link",
    ):
        with pytest.raises(LookupFailedError, match=r"is not within allowed\.paths"):
            FileProvider(allowed=allowed).value(str(path), "password")
    for key in ("link", "../allowed-too/x", "..", ""):
        with pytest.raises(LookupFailedError, match=r"allowed\.paths|is not the name of a file"):
            DirectoryProvider(allowed=allowed).value(str(secrets.parent), key)


@pytest.mark.parametrize(
    ("path", "key", "reported"),
    [
        ("{file}", "lost", "there is no key lost in {file}"),
        ("{file}x", "password", "{file}x cannot be read: No such file or directory"),
        ("", "password", "it names no path"),
    ],
)
def test_a_file_that_does_not_say_is_reported(secrets: Path, path: str, key: str, reported: str):
    """With what was looked for, and where."""
    with pytest.raises(LookupFailedError) as failed:
        FileProvider().value(path.format(file=secrets), key)

    assert reported.format(file=secrets) == str(failed.value)


def test_a_file_that_is_no_properties_file_is_not_shown(secrets: Path):
    """Not even the line that is wrong."""
    secrets.write_text(f"password={CANARY}\\u12", "utf-8")

    with pytest.raises(LookupFailedError) as failed:
        FileProvider().value(str(secrets), "password")

    assert f"{secrets} is not a properties file" == str(failed.value)
    assert failed.value.__cause__ is None


def test_only_variables_that_may_be_read_are():
    """Their whole name has to match."""
    provider = EnvironmentProvider(
        pattern=re.compile("MY_.*"), environment={"MY_A": "1", "NOT_MY_A": "2"}
    )

    assert "1" == provider.value("", "MY_A")
    with pytest.raises(LookupFailedError, match=r"NOT_MY_A does not match allowlist\.pattern"):
        provider.value("", "NOT_MY_A")
    with pytest.raises(LookupFailedError, match="environment variables have no path"):
        provider.value("p", "MY_A")


@pytest.mark.parametrize(
    "class_name",
    ["file", "env", "directory"]
    + [f"{JAVA}.{each}ConfigProvider" for each in ("File", "EnvVar", "Directory")],
)
def test_a_provider_is_named_in_the_worker_s_configuration(class_name: str):
    """By our name or Kafka's class; one that is not named is none."""
    props = {"config.providers": "p", "config.providers.p.class": class_name}

    assert ["p"] == list(providers_of(props))
    assert [] == list(provider_problems(props))
    assert {} == providers_of({"config.providers.p.class": class_name})


@pytest.mark.parametrize(
    ("props", "key", "reported"),
    [
        ({"class": ""}, "class", "could not be found"),
        ({}, "class", "Missing required configuration"),
        ({"class": "file", "param.allowed.path": "/"}, "param.allowed.path", "not a parameter"),
        ({"class": "file", "param.allowed.paths": "x"}, "param.allowed.paths", "is not absolute"),
        (
            {"class": "directory", "param.allowed.paths": "/nowhere/at/all"},
            "param.allowed.paths",
            "Path /nowhere/at/all does not exist",
        ),
        (
            {"class": "env", "param.allowlist.pattern": "("},
            "param.allowlist.pattern",
            "Syntax error in regular expression",
        ),
    ],
)
def test_a_provider_that_cannot_be_is_a_problem(props: dict[str, str], key: str, reported: str):
    """Of the worker's configuration; until it is right there is none."""
    given = {
        "config.providers": "p",
        **{f"config.providers.p.{name}": value for name, value in props.items()},
    }

    [(named, sentence)] = provider_problems(given)

    assert f"config.providers.p.{key}" == named
    assert reported in sentence
    assert {} == providers_of(given)


def test_settings_of_a_provider_that_is_not_named_are_a_problem():
    """Somebody believes in it."""
    [(key, reported)] = provider_problems({"config.providers.p.class": "file"})

    assert "config.providers.p.class" == key
    assert "add the provider there" in reported
