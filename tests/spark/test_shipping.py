"""Authors' modules on their way to Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headrace.connect.errors import TaskFailedError
from headrace.spark.engine import packed


def imported_from(archive: Path, expression: str) -> str:
    """What another Python process sees with nothing but *archive*."""
    program = f"import sys; sys.path[:0] = [{str(archive)!r}]; {expression}"
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, check=True, text=True
    )
    return done.stdout.strip()


def test_a_module_of_one_file_is_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It can be imported from the archive."""
    (tmp_path / "lonely_module.py").write_text("ANSWER = 42\n")
    monkeypatch.syspath_prepend(tmp_path)

    archive = packed("lonely_module", tmp_path)

    assert "42" == imported_from(archive, "import lonely_module; print(lonely_module.ANSWER)")


def test_a_package_is_packed_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its inner modules."""
    inner = tmp_path / "whole_package" / "inner"
    inner.mkdir(parents=True)
    (inner.parent / "__init__.py").write_text("")
    (inner / "__init__.py").write_text("")
    (inner / "deep.py").write_text("ANSWER = 43\n")
    monkeypatch.syspath_prepend(tmp_path)

    archive = packed("whole_package", tmp_path)

    assert "43" == imported_from(
        archive, "from whole_package.inner import deep; print(deep.ANSWER)"
    )


def test_what_is_no_python_file_is_refused_by_name(tmp_path: Path) -> None:
    """A built-in module is the simplest example."""
    with pytest.raises(TaskFailedError, match="zipimport"):
        packed("zipimport", tmp_path)
