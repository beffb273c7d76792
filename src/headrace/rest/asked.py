"""A request as handlers see it, and what they answer; neither knows of the web framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from headrace.runtime.herder.errors import BadRequestError

JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request whose route is known.

    *names* are the variable segments of its path, decoded. *query* holds each parameter with all its
    values. *origin* is the scheme, host and port by which the client reached this worker. *user* is the one
    who logged in, otherwise the client's address.
    """

    names: Sequence[str] = ()
    query: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    body: bytes = field(default=b"", repr=False)
    origin: str = ""
    user: str | None = None

    @property
    def name(self) -> str:
        """The first variable segment: a connector's, plugin's or logger's name."""
        return self.names[0]

    def flag(self, parameter: str, *, default: bool = False) -> bool:
        """A boolean parameter as Java reads it: only ``true`` is true; *default* when it is not there."""
        values = self.query.get(parameter)
        return values[0].lower() == "true" if values else default

    def switch(self, parameter: str) -> bool:
        """A boolean parameter of our own, false when it is not there.

        Raises ``BadRequestError`` for a word that is neither: nobody means to have a dry run overlooked.
        """
        value = self.text(parameter)
        if value is None or value.lower() == "false":
            return False
        if value.lower() != "true":
            raise BadRequestError(
                f"The parameter {parameter} must be true or false, and is {value}"
            )
        return True

    def text(self, parameter: str) -> str | None:
        """The first value of a parameter, if there is one."""
        values = self.query.get(parameter)
        return values[0] if values else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is sent back: *content* becomes JSON, unless the answer *is_empty*."""

    status: int = 200
    content: object = field(default=None, repr=False)
    is_empty: bool = False
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


Handler = Callable[[Asked], Answer]
"""Answers a request, in a worker thread; may block. Raises what ``errors`` knows how to tell."""


def nothing(status: int = 204) -> Answer:
    """An answer without a body."""
    return Answer(status=status, is_empty=True)
