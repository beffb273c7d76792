"""What an author's classes give, looked at where they give it: a mistake is told with its class and method."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from http.client import HTTPResponse
from io import TextIOBase
from typing import TYPE_CHECKING, Any

from headrace.connect.errors import ConnectError, TaskFailedError
from headrace.formats.readable import Readable
from headrace.formats.response import Response
from headrace.sources.item import UNKNOWN_LENGTH, NativeItem
from headrace.sources.source import NativeSource

if TYPE_CHECKING:
    from headrace.sources.config import SourceConfig
    from headrace.sources.keys import K
    from headrace.sources.task import NativeSourceTask

_log = logging.getLogger(__name__)
_METHODS_OF_ITEMS = ("context", "version", "open", "estimated_length")


def made_source(task: NativeSourceTask, settings: SourceConfig) -> NativeSource[Any]:
    """The source of *task*; raises ``TaskFailedError`` for what is none."""
    found: Any = task.source(settings)
    if isinstance(found, NativeSource):
        return found
    raise wrong(task, "source", found, "a NativeSource")


def listed_items(source: NativeSource[K], start: K | None) -> Iterator[NativeItem[K]]:
    """What *source* lists; raises ``TaskFailedError`` for what are no items, and for errors of an author's code."""
    try:
        found: Any = source.items(start)
        if not isinstance(found, Iterable):
            raise wrong(source, "items", found, "an iterator of items, an empty one for none")
        for item in found:
            yield _checked_item(source, "items", item)
    except (OSError, ConnectError):
        raise
    except Exception as error:
        raise _raised(source, "items", error) from error


def found_item(source: NativeSource[K], key: K) -> NativeItem[K]:
    """The item that *source* has for *key*; raises ``TaskFailedError`` as :func:`listed_items` does."""
    try:
        return _checked_item(source, "item", source.item(key))
    except (OSError, ConnectError):
        raise
    except Exception as error:
        raise _raised(source, "item", error) from error


def opened(item: NativeItem[Any]) -> Readable:
    """The stream of *item*; raises ``TaskFailedError`` for what is no stream of bytes."""
    found: object = item.open()
    if isinstance(found, TextIOBase) or not hasattr(found, "readinto"):
        told = "a stream of bytes with readinto, such as io.BytesIO or a file that is opened with mode rb"
        raise wrong(item, "open", found, told)
    return Response(found) if isinstance(found, HTTPResponse) else found  # pyright: ignore[reportReturnType]


def version_of(item: NativeItem[Any]) -> str | None:
    """The version of *item*; raises ``TaskFailedError`` for one that is no text."""
    found: Any = item.version()
    if found is None or isinstance(found, str):
        return found
    raise wrong(item, "version", found, "a str or None")


def length_of(item: NativeItem[Any]) -> int | None:
    """How long *item* is, about, or ``None``; raises ``TaskFailedError`` for what is no length."""
    found: Any = item.estimated_length()
    if not isinstance(found, int) or isinstance(found, bool):
        raise wrong(item, "estimated_length", found, "a whole number of bytes, or UNKNOWN_LENGTH")
    return None if found == UNKNOWN_LENGTH else found


def key_of(item: NativeItem[K]) -> K:
    """The key of *item*; raises ``TaskFailedError`` for a context that is none, or that Kafka could not have."""
    context: Any = item.context()
    if not hasattr(context, "native_key"):
        raise wrong(item, "context", context, "a Context")
    check_partition(context.partition, f"{context.native_key}: {_named(item, 'context')}")
    return context.native_key


def check_partition(partition: Any, where: str) -> None:  # noqa: ANN401 (whatever came)
    """Raise ``TaskFailedError``, which begins with *where*, for what is no Kafka partition and not ``None``."""
    whole = isinstance(partition, int) and not isinstance(partition, bool)
    if partition is not None and not (whole and partition >= 0):
        raise TaskFailedError(
            f"{where} tells the Kafka partition {partition!r}. It must be an integer from 0 on, or None."
        )


def wrong(author: object, method: str, found: object, needed: str) -> TaskFailedError:
    """The error for what *method* of *author* gave: *found*, where *needed* has to come."""
    kind = "None" if found is None else f"an object of class {type(found).__name__}"
    return TaskFailedError(f"{_named(author, method)} gave {kind}. It must give {needed}.")


def _checked_item(source: NativeSource[K], method: str, found: Any) -> NativeItem[K]:  # noqa: ANN401 (whatever came)
    if not isinstance(found, NativeItem):
        raise wrong(source, method, found, "what extends NativeItem")
    for each in _METHODS_OF_ITEMS:
        is_property = isinstance(getattr(type(found), each), property)
        if is_property or not callable(getattr(found, each)):
            kind = "property" if is_property else "value"
            raise TaskFailedError(f"{_named(found, each)} must be a method, not a {kind}.")
    return found


def _raised(source: NativeSource[Any], method: str, error: Exception) -> TaskFailedError:
    told = f"{_named(source, method)} raised {type(error).__name__}: {str(error).rstrip('.')}."
    _log.error("%s: %s", source.name, told, exc_info=error)
    return TaskFailedError(
        f"{source.name}: {told} It must raise an OSError where the source does not answer, and nothing else."
    )


def _named(author: object, method: str) -> str:
    return f"{type(author).__name__}.{method}"
