"""Who asks Azure Blob Storage."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from typing import Protocol

from azure.core.exceptions import AzureError, ClientAuthenticationError
from azure.identity import DefaultAzureCredential

from headrace.connect.errors import TaskFailedError
from headrace.stores.azure.account import Account
from headrace.stores.errors import StoreUnavailableError
from headrace.stores.rest.client import Login, Request, nobody

_SCOPE = "https://storage.azure.com/.default"
_EARLY_SECONDS = 300
# The headers that a signature names in this order, whether they are there or not.
_SIGNED = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)


class Token(Protocol):
    """A token and when it ends, in seconds of the epoch."""

    @property
    def token(self) -> str:
        """The token."""
        ...

    @property
    def expires_on(self) -> int:
        """The end of its time."""
        ...


def login_of(account: Account) -> Login:
    """The login of *account*; asks no one for a token yet."""
    if account.key:
        return KeyLogin(account.name, account.key)
    if account.sas:
        return lambda request: replace(request, query={**request.query, **account.sas})
    return nobody if account.anonymous else TokenLogin(_chain)


class KeyLogin:
    """Signs requests with a key of the account, as "Authorize with Shared Key" in Azure's docs says."""

    def __init__(self, account: str, key: bytes, *, now: Callable[[], float] = time.time) -> None:
        self._account = account
        self._key = key
        self._now = now

    def __call__(self, request: Request) -> Request:
        """See ``Login``."""
        headers = {**request.headers, "x-ms-date": formatdate(self._now(), usegmt=True)}
        text = self.text_of(replace(request, headers=headers))
        digest = hmac.digest(self._key, text.encode(), hashlib.sha256)
        signature = base64.b64encode(digest).decode()
        headers["Authorization"] = f"SharedKey {self._account}:{signature}"
        return replace(request, headers=headers)

    def text_of(self, request: Request) -> str:
        """What is signed of *request*."""
        headers = {name.lower(): value.strip() for name, value in request.headers.items()}
        ours = sorted(name for name in headers if name.startswith("x-ms-"))
        query = sorted((name.lower(), value) for name, value in request.query.items())
        length = headers.get("content-length")
        headers["content-length"] = "" if length in (None, "0") else length
        return "\n".join(
            [
                request.method,
                *(headers.get(name, "") for name in _SIGNED),
                *(f"{name}:{headers[name]}" for name in ours),
                f"/{self._account}{request.path}",
                *(f"{name}:{value}" for name, value in query),
            ]
        )


class TokenLogin:
    """Shows a token of the usual chain, which is renewed some minutes before it ends.

    *chain* makes what fetches a token for a scope; it is called once, at the first request.
    """

    def __init__(
        self,
        chain: Callable[[], Callable[[str], Token]],
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._chain = chain
        self._now = now
        self._fetch: Callable[[str], Token] | None = None
        self._token: Token | None = None

    def __call__(self, request: Request) -> Request:
        """See ``Login``."""
        if self._token is None or self._token.expires_on - _EARLY_SECONDS < self._now():
            self._token = self._fetched()
        headers = {**request.headers, "Authorization": f"Bearer {self._token.token}"}
        return replace(request, headers=headers)

    def _fetched(self) -> Token:
        try:
            self._fetch = self._fetch or self._chain()
            return self._fetch(_SCOPE)
        except ClientAuthenticationError as error:
            raise TaskFailedError(
                f"The login at Azure failed: {error.message} Log in, or give azure.account.key, "
                "azure.sas.token or azure.connection.string, or azure.anonymous=true."
            ) from error
        except AzureError as error:
            raise StoreUnavailableError(f"No token could be fetched: {error.message}") from error


def _chain() -> Callable[[str], Token]:
    return DefaultAzureCredential().get_token
