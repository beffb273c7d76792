"""Classes by where they lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from doubles import puppets
from headrace.class_path import Terminated, class_at
from headrace.connect.errors import TaskFailedError
from headrace.connect.task import SourceTask


class Outer:
    """Has a task inside."""

    class Task(SourceTask):
        """Lies in another class."""


def test_a_class_is_found():
    """Its module is imported, and it may lie in another class."""
    assert puppets.PuppetTask is class_at("doubles.puppets:PuppetTask", SourceTask)
    assert Outer.Task is class_at(f"{__name__}:{Outer.Task.__qualname__}", SourceTask)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("headrace.nowhere:Task", "could not be loaded: No module named 'headrace.nowhere'"),
        ("doubles.puppets:Nobody", "has no attribute 'Nobody'"),
        (":Task", "could not be loaded"),
        ("doubles.puppets:PolledPuppet", "is not a SourceTask."),
        ("doubles.puppets:numbered", "is not a SourceTask."),
        ("doubles.puppets", "could not be loaded"),
    ],
)
def test_what_is_no_such_class_is_reported_with_its_path(path: str, told: str):
    """A worker shows it for the connector, a slot for its task."""
    with pytest.raises(TaskFailedError) as raised:
        class_at(path, SourceTask)

    assert str(raised.value).startswith(path)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("x = 1\nclass (:\n", "SyntaxError: invalid syntax ({file}, line 2)"),
        ("\n\n1 / 0\n", "ZeroDivisionError: division by zero ({file}, line 3)"),
        ("import nowhere\n", "No module named 'nowhere' ({file}, line 1)"),
    ],
)
def test_a_module_that_cannot_be_imported_is_reported_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, told: str
):
    """One sentence, whatever the module raises."""
    module = f"broken_{abs(hash(content))}"
    file = tmp_path / f"{module}.py"
    file.write_text(content)
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(TaskFailedError) as raised:
        class_at(f"{module}:Task", SourceTask)

    assert f"{module}:Task could not be loaded: {told.format(file=file)}" == str(raised.value)


@pytest.mark.parametrize("raised", ["asyncio.CancelledError", "GeneratorExit"])
def test_what_a_module_handled_at_its_import_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: str
):
    """Only what was to end the process goes on to end it; the plugin is reported as any other that cannot be imported."""
    module = f"handled_{raised.replace('.', '_')}"
    text = f"import asyncio\ntry:\n    raise {raised}\nexcept {raised}:\n    raise ValueError('no plugin')\n"
    (tmp_path / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(TaskFailedError, match="no plugin"):
        class_at(f"{module}:Task", SourceTask)


@pytest.mark.parametrize("raised", [KeyboardInterrupt, Terminated])
def test_what_was_to_end_the_process_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: type[BaseException]
):
    """Whatever the module that was being imported made of it."""
    module = f"interrupted_{raised.__name__}"
    text = (
        f"from {raised.__module__} import {raised.__name__}\n"
        f"try:\n    raise {raised.__name__}\nexcept BaseException:\n    raise ValueError('x')\n"
    )
    (tmp_path / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(raised):
        class_at(f"{module}:Task", SourceTask)
