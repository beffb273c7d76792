"""Where cached things go."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.connect.errors import ConnectError
from headrace.jvm.cache import cache_folder


def test_named_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """HEADRACE_CACHE names the folder, and folders in it are made when they are needed."""
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "a cache"))

    assert tmp_path / "a cache" / "jars" == cache_folder("jars")
    assert (tmp_path / "a cache" / "jars").is_dir()


def test_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Without any variable it is where caches are in a home."""
    monkeypatch.delenv("HEADRACE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert tmp_path / ".cache" / "headrace" / "java" == cache_folder("java")


def test_not_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The error names the variable that moves the folder."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "file"))

    with pytest.raises(ConnectError, match="Set HEADRACE_CACHE"):
        cache_folder("jars")
