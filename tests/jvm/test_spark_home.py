"""The Java home that makes the packaged runtime fit for Spark."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from headrace.jvm.spark_home import home_for_spark


def test_module_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Only the module that the runtime lacks is left out; blanks in paths and arguments stay."""
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "a cache"))
    real = tmp_path / "real java" / "bin" / "java"
    real.parent.mkdir(parents=True)
    real.write_text('#!/bin/sh\nprintf "[%s]" "$@"\n')
    real.chmod(0o755)

    java = home_for_spark(real.parent.parent) / "bin" / "java"
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "--add-modules=java.se"]
    said = subprocess.run([java, *arguments], capture_output=True, text=True, check=True).stdout

    assert "[-Xmx1g][a b][--add-modules=java.se]" == said
