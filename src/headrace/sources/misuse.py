"""What an author's classes give, looked at where they give it: a mistake is told with its class and method."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from http.client import HTTPResponse
from io import TextIOBase
from typing import TYPE_CHECKING, Any

from headrace.connect.errors import TaskFailedError
from headrace.sources.extractors.readable import Readable
from headrace.sources.extractors.response import Response

if TYPE_CHECKING:
    from headrace.sources.item import NativeItem
    from headrace.sources.keys import K
    from headrace.sources.source import NativeSource


def listed_items(source: NativeSource[K], start: K | None) -> Iterator[NativeItem[K]]:
    """What *source* lists; raises ``TaskFailedError`` for what are no items."""
    found: Any = source.items(start)
    if not isinstance(found, Iterable):
        raise wrong(source, "items", found, "an iterator of items, an empty one for none")
    for item in found:
        yield _checked_item(source, "items", item)


def found_item(source: NativeSource[K], key: K) -> NativeItem[K]:
    """The item that *source* has for *key*; raises ``TaskFailedError`` for what is none."""
    return _checked_item(source, "item", source.item(key))


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
    if callable(getattr(found, "context", None)) and callable(getattr(found, "version", None)):
        return found
    raise wrong(source, method, found, "what extends NativeItem")


def _named(author: object, method: str) -> str:
    return f"{type(author).__name__}.{method}"
