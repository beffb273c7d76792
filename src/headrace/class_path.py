"""Classes and functions of authors by where they lie: ``package.module:Class``."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable
from operator import attrgetter
from typing import TypeVar

from headrace.connect.errors import TaskFailedError

Kind = TypeVar("Kind")


def class_at(path: str, kind: type[Kind]) -> Callable[[], Kind]:
    """The class at *path*, to be called without arguments, which must be a *kind*; imports its module.

    Raises :class:`~headrace.connect.errors.TaskFailedError` when it is not there or of another kind, or
    when its module cannot be imported; then with the file and the line. Called once for each connector, and
    by each slot for its task.
    """
    module, _, name = path.partition(":")
    found = _loaded(path, module, name)
    if not (isinstance(found, type) and issubclass(found, kind)):
        raise TaskFailedError(f"{path} is not a {kind.__name__}.")
    return found


def function_at(path: str) -> Callable[..., object]:
    """The function at *path*, ``package.module:name`` or ``package.module.name``; imports its module.

    Raises :class:`~headrace.connect.errors.TaskFailedError` as :func:`class_at` does.
    """
    module, name = module_and_name(path)
    found = _loaded(path, module, name)
    if not callable(found):
        raise TaskFailedError(f"{path} is not a function.")
    return found


def module_and_name(path: str) -> tuple[str, str]:
    """The two parts of *path*: behind a colon, or else behind the last dot, stands the name. Pure."""
    module, _, name = path.partition(":") if ":" in path else path.rpartition(".")
    return module, name


def _loaded(path: str, module: str, name: str) -> object:
    try:
        return attrgetter(name)(importlib.import_module(module))
    except (Exception, SystemExit) as error:  # (a module may raise anything when it is imported)
        raise TaskFailedError(f"{path} could not be loaded: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    """*error* with the file and the line where it was raised, if that is in a module of somebody else."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} ({error.filename}, line {error.lineno})"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)[1:]
        if not frame.filename.startswith("<frozen ") and frame.filename != importlib.__file__
    ]
    if not frames:
        return str(error)
    kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
    return f"{kind}{error} ({frames[-1].filename}, line {frames[-1].lineno})"
