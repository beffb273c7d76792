"""Loads plugins' classes and functions by their path, ``package.module:Class``, and the folders to import them from."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable, Iterable
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from headrace.connect.errors import TaskFailedError

Kind = TypeVar("Kind")


class Terminated(BaseException):
    """SIGTERM was received: everything open is closed on the way out. Not caught by code that catches errors."""


# Other such exceptions, as that of a cancelled coroutine, may have been handled by the module that was imported.
_ENDS_PROCESS = (KeyboardInterrupt, Terminated)


def class_at(path: str, kind: type[Kind]) -> Callable[[], Kind]:
    """The class at *path*, to be called without arguments, which must be a *kind*; imports its module.

    Raises :class:`~headrace.connect.errors.TaskFailedError` when it does not exist or is of another kind, or
    when its module cannot be imported, with the file and the line. Called once for each connector, and by
    each slot for its task.
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
    """The module and the name in *path*: the name follows a colon, or else the last dot. Pure."""
    module, _, name = path.partition(":") if ":" in path else path.rpartition(".")
    return module, name


def interruption_behind(error: BaseException) -> BaseException | None:
    """The signal's exception that a module's import has turned into *error*; ``None`` if there is none."""
    seen = list[BaseException]()
    each: BaseException | None = error
    while each is not None and each not in seen:
        if isinstance(each, _ENDS_PROCESS):
            return each
        seen.append(each)
        each = each.__cause__ or each.__context__
    return None


def _loaded(path: str, module: str, name: str) -> object:
    try:
        return attrgetter(name)(importlib.import_module(module))
    except (Exception, SystemExit) as error:  # (a module may raise anything when it is imported)
        if (interruption := interruption_behind(error)) is not None:
            raise interruption from None
        raise TaskFailedError(f"{path} could not be loaded: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    """*error* with the file and the line where it was raised, if that is in the imported module."""
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


def make_importable(folders: Iterable[str]) -> None:
    """Add *folders* at the end of the module path, so that none of their modules hides an installed one.

    A folder that this machine does not have is ignored. May be repeated. Called once by a worker, and by each slot
    before its task is loaded.
    """
    for each in folders:
        if each not in sys.path and Path(each).is_dir():
            sys.path.append(each)
