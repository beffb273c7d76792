"""Values that nobody may read in a log, a trace or an answer, and what is shown in place of each."""

from __future__ import annotations

import functools
import json
import re
import traceback
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from headrace.connect.errors import TaskFailedError
from headrace.observe.secret_forms import forms


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """Secrets, each with the *values*' text that is shown in its place. Any thread may use it.

    A secret is found as it is, as a quoted text, an address or a marked-up text has it, and in its pieces
    (:func:`~headrace.observe.secret_pieces.pieces`).
    """

    values: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def masked(self, text: str, *, as_json: bool = False) -> str:
        """*text* without the secrets; what takes their place is escaped when it is *as_json*. Pure."""
        if not self.values:
            return text
        pattern, shown = _search(frozenset(self.values.items()))

        def replaced(found: re.Match[str]) -> str:
            return json.dumps(shown[found[0]])[1:-1] if as_json else shown[found[0]]

        return pattern.sub(replaced, text) if pattern else text

    def together(self, values: Mapping[str, str]) -> Hidden:
        """These and *values*; the same object when all of them are known. Pure."""
        known = values.items() <= self.values.items()
        return self if known else Hidden(values={**self.values, **values})


def told_without(hidden: Hidden, error: Exception) -> Exception:
    """*error*, or what may be raised in its place: neither it nor what it came from shows a secret.

    Changes the words of *error* itself where that is enough, so that it keeps its type.
    """
    if not _shows(hidden, error):
        return error
    for each in _chain(error):
        each.args = tuple(
            hidden.masked(word) if isinstance(word, str) else word for word in each.args
        )
    return TaskFailedError(hidden.masked(str(error))) if _shows(hidden, error) else error


@contextmanager
def kept_secret(hidden: Hidden) -> Generator[None]:
    """Let what is raised within, such as by an author's class, show nothing that is *hidden*."""
    try:
        yield
    except Exception as error:
        told = told_without(hidden, error)
        if told is error:
            raise
        raise told from None


def _shows(hidden: Hidden, error: Exception) -> bool:
    texts = (*traceback.format_exception(error), str(error))
    return any(hidden.masked(text) != text for text in texts)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen = list[BaseException]()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is not None and each not in seen:
            seen.append(each)
            waiting += [each.__cause__, each.__context__]
            yield each


# A connector's secrets are the same for each of its lines.
@functools.lru_cache(maxsize=64)
def _search(values: frozenset[tuple[str, str]]) -> tuple[re.Pattern[str] | None, dict[str, str]]:
    shown = dict[str, str]()
    for secret, instead in values:
        for form in forms(secret):
            shown.setdefault(form, instead)
    # The longest first: one secret may be a part of another.
    found = "|".join(map(re.escape, sorted(shown, key=len, reverse=True)))
    return (re.compile(found) if found else None), shown
