"""Operations of a store that is asked over plain HTTP: sent, tried again, and their failures named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from headrace.stores.rest.client import Request, Response, RestClient
from headrace.stores.rest.errors import Meanings, Refusal, error_of, place_of
from headrace.stores.retries import Retries


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer that was read to its end."""

    headers: Mapping[str, str]
    body: bytes


RefusalOf = Callable[[int, Mapping[str, str], bytes], Refusal]
"""Reads what the store says is wrong: status, headers, body."""


class RestCalls:
    """Asks *client*, whose store errors call *store*."""

    def __init__(
        self,
        store: str,
        client: RestClient,
        *,
        retries: Retries,
        refusal_of: RefusalOf,
        meanings: Meanings,
    ) -> None:
        self._store = store
        self._client = client
        self._retries = retries
        self._refusal_of = refusal_of
        self._meanings = meanings

    def ask(self, key: str | None, asked: str, request: Request) -> Answer:
        """The whole answer, with retries; *asked* is the operation's name. Raises as ``Store`` says."""
        return self._retries.call(lambda: self.once(key, asked, request))

    def once(self, key: str | None, asked: str, request: Request) -> Answer:
        """What :meth:`ask` says, of one attempt."""
        response = self._sent(key, asked, request)
        self._raise_refusal(key, asked, response)
        return Answer(headers=response.headers, body=response.whole())

    def stream(self, key: str, asked: str, request: Request) -> Response | None:
        """The answer to one attempt, to be read, or ``None`` for a range behind the object's end."""
        response = self._sent(key, asked, request)
        if response.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            response.whole()
            return None
        self._raise_refusal(key, asked, response)
        return response

    def _sent(self, key: str | None, asked: str, request: Request) -> Response:
        return self._client.send(f"{place_of(self._store, key)}: {asked}", request)

    def _raise_refusal(self, key: str | None, asked: str, response: Response) -> None:
        if response.status >= HTTPStatus.MULTIPLE_CHOICES:
            refusal = self._refusal_of(response.status, response.headers, response.whole())
            raise error_of((self._store, key), asked, refusal, self._meanings)
