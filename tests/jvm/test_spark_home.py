"""The Java home that makes the packaged runtime fit for Spark."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from headrace.jvm.java import home_for_spark

OPENS = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize(("major", "left"), [(17, f"[{OPENS}]"), (25, "")])
def test_what_java_would_warn_of_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, major: int, left: str, *, apart: bool
):
    """The module that a trimmed runtime lacks, and the package that newer ones do; blanks stay."""
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "a cache"))
    real = tmp_path / "real java" / "bin" / "java"
    real.parent.mkdir(parents=True)
    real.write_text('#!/bin/sh\nprintf "[%s]" "$@"\n')
    real.chmod(0o755)

    java = home_for_spark(real.parent.parent, major, apart=apart) / "bin" / "java"
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", OPENS, "a b"]
    output = subprocess.run([java, *arguments], capture_output=True, text=True, check=True).stdout

    assert f"[-Xmx1g]{left}[a b]" == output


def test_a_program_that_people_start_themselves_stays_with_their_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Ctrl-C ends it; only headrace's own sessions are out of its reach."""
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    homes = [home_for_spark(tmp_path, 17, apart=apart) for apart in (True, False)]

    assert [True, False] == ["setsid" in (each / "bin" / "java").read_text() for each in homes]
