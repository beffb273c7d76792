"""What can be wrong with one object of a store, named by what the one who catches it does next.

An error that passes on its own (a server that is busy, a connection that broke) is a
:class:`StoreUnavailableError`, which is an ``OSError``; adapters try again a few times before they raise it.
All others are final for what was asked. What has no class of its own, such as a refused login or a bucket
that is missing, is a :class:`~headrace.connect.errors.TaskFailedError`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from headrace.connect.errors import RetriableError, TaskFailedError


class StoreUnavailableError(OSError):
    """The store did not answer, not fully or not now; the same may go well later."""


class ObjectError(TaskFailedError):
    """Something about one object; *store* and *key* name it."""

    def __init__(self, store: str, key: str, sentence: str) -> None:
        self.store = store
        self.key = key
        super().__init__(f"{store}: {key!r}: {sentence}")


class KeyNotRepresentableError(ObjectError):
    """The store, or its adapter, cannot name this key exactly: a person has to rename the object."""


class ObjectGoneError(ObjectError):
    """The object does not exist (any more)."""

    def __init__(self, store: str, key: str) -> None:
        super().__init__(store, key, "This object does not exist, or no longer.")


class ObjectChangedError(ObjectError):
    """The object is no longer the version that was asked for; nothing was done to it."""


class ChecksumError(ObjectError):
    """The object's bytes, as they arrived, do not have the checksum that the store gives."""


class ObjectArchivedError(ObjectError):
    """The object lies in an archive and cannot be read before it is restored."""


@contextmanager
def retriable() -> Generator[None]:
    """Turn what may pass, and did not within the store's own attempts, into ``RetriableError``."""
    try:
        yield
    except StoreUnavailableError as error:
        raise RetriableError(str(error)) from error
