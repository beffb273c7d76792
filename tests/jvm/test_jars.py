"""The cached sets of jars."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from headrace.connect.errors import ConnectError
from headrace.jvm.jars import class_path
from headrace.jvm.java import Java, find_java

pytestmark = pytest.mark.broker


@pytest.fixture
def copied_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own that holds the broker's jars."""
    jars = class_path("broker", java=find_java()).split(os.pathsep)
    folder = Path(jars[0]).parent
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    return shutil.copytree(folder, tmp_path / "jars" / folder.name)


def test_cached_set(copied_cache: Path):
    """A whole set is taken as it is, whichever Java uses it."""
    jars = class_path("broker", java=find_java()).split(os.pathsep)

    assert {copied_cache} == {Path(jar).parent for jar in jars}


def test_changed_jar(copied_cache: Path):
    """A changed jar is never used; the error names the jar and the folder to remove."""
    with (copied_cache / "kafka-clients-4.3.1.jar").open("ab") as jar:
        jar.write(b"!")

    with pytest.raises(ConnectError, match=r"kafka-clients-4\.3\.1\.jar is not") as error:
        class_path("broker", java=find_java())

    assert f"Remove the folder {copied_cache}" in str(error.value)


def test_failing_fetch(copied_cache: Path, tmp_path: Path):
    """When fetching fails twice the error has what to check, and the old folder is as it was."""
    (copied_cache / "kafka-clients-4.3.1.jar").unlink()
    false = Java(home=tmp_path, executable=Path(shutil.which("false") or ""), major=17, origin="")

    with pytest.raises(ConnectError, match="HEADRACE_IVY_SETTINGS"):
        class_path("broker", java=false)

    assert [copied_cache.name, "lock"] == sorted(
        path.name for path in copied_cache.parent.iterdir()
    )
