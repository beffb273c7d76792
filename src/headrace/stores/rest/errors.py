"""What the answers of stores that are asked over plain HTTP mean, as the errors of all stores."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from headrace.connect.errors import TaskFailedError
from headrace.stores.errors import (
    KeyNotRepresentableError,
    ObjectArchivedError,
    ObjectChangedError,
    ObjectGoneError,
    StoreUnavailableError,
)

PASSING = frozenset({"408", "429", "500", "502", "503", "504"})
"""Statuses after which the same may go well later, at any store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An answer that is not what was asked for: its status, the store's word for it and its sentence."""

    status: int
    code: str
    message: str

    @property
    def words(self) -> frozenset[str]:
        """What the sets of :class:`Meanings` may name it by: its code, or its status."""
        return frozenset({self.code, str(self.status)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Meanings:
    """A store's codes and statuses by what they mean, and advice for what a person has to mend."""

    passing: frozenset[str]
    changed: frozenset[str]
    gone: frozenset[str]
    bad_key: frozenset[str] = frozenset()
    archived: frozenset[str] = frozenset()
    forbidden: str
    """Advice for a refused login, or one without the right."""
    advice: str
    """Advice for everything else."""


def error_of(
    place: tuple[str, str | None], asked: str, refusal: Refusal, meanings: Meanings
) -> TaskFailedError | StoreUnavailableError:
    """What *refusal* of the operation *asked* means at *place*, a store and a key if it was about one."""
    store, key = place
    words = refusal.words
    told = f"{place_of(store, key)}: {asked}: {refusal.status} {refusal.message}"
    if words & meanings.passing:
        return StoreUnavailableError(told)
    if key is not None:
        if words & meanings.gone:
            return ObjectGoneError(store, key)
        if words & meanings.changed:
            return ObjectChangedError(store, key, "It is another version by now.")
        if words & meanings.archived:
            return ObjectArchivedError(store, key, "It lies in an archive. Restore it first.")
        if words & meanings.bad_key:
            return KeyNotRepresentableError(store, key, f"The store refuses it: {refusal.message}")
    refused = refusal.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
    return TaskFailedError(
        f"{told} ({refusal.code}). {meanings.forbidden if refused else meanings.advice}"
    )


def place_of(store: str, key: str | None) -> str:
    """How errors begin."""
    return store if key is None else f"{store}: {key!r}"
