"""Who asks Google Cloud Storage."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, cast

import google.auth
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, TransportError
from google.auth.transport.requests import Request as Transport
from google.oauth2.credentials import Credentials as UserCredentials
from google.oauth2.service_account import Credentials as ServiceCredentials

from headrace.connect.errors import TaskFailedError
from headrace.stores.errors import StoreUnavailableError
from headrace.stores.gcs.config import GcsConfig
from headrace.stores.rest.client import Login, Request, nobody

_SCOPES = ("https://www.googleapis.com/auth/devstorage.read_write",)
_ADVICE = (
    "Set gcs.credentials.file or GOOGLE_APPLICATION_CREDENTIALS to a file that exists and is valid, or "
    "gcs.anonymous=true for a public bucket."
)


class Credentials(Protocol):
    """What is used of google-auth's credentials, which fetch and renew a token by themselves."""

    def before_request(
        self, request: object, method: str, url: str, headers: dict[str, str]
    ) -> None:
        """Put the token into *headers*."""
        ...


def login_of(config: GcsConfig) -> Login:
    """The login that *config* describes; asks no one for a token yet, and reads no file."""
    return nobody if config.anonymous else GcsLogin(config)


class GcsLogin:
    """Signs requests with a token of the credentials that *config* names, looked for at the first one."""

    def __init__(self, config: GcsConfig) -> None:
        self._config = config
        self._credentials: Credentials | None = None
        self._transport = Transport()

    def __call__(self, request: Request) -> Request:
        """See ``Login``."""
        headers = dict(request.headers)
        try:
            self._credentials = self._credentials or _credentials_of(self._config)
            # The address is for credentials that are made for one audience; ours are for a scope.
            self._credentials.before_request(
                self._transport, request.method, self._config.endpoint, headers
            )
        except GoogleAuthError as error:
            raise _told(f"gs://{self._config.bucket}", error) from error
        return replace(request, headers=headers)


def _credentials_of(config: GcsConfig) -> Credentials:
    if config.credentials_json:
        return _from_json(config.credentials_json.value, "gcs.credentials.json")
    if config.credentials_file:
        try:
            text = Path(config.credentials_file).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise TaskFailedError(f"gcs.credentials.file cannot be read: {error}.") from error
        return _from_json(text, config.credentials_file)
    found, _ = google.auth.default(scopes=_SCOPES)
    return cast("Credentials", found)


def _from_json(text: str, where: str) -> Credentials:
    try:
        # Anything: what it should be is looked at by google-auth.
        info: Any = json.loads(text)
        make = {
            "service_account": ServiceCredentials.from_service_account_info,
            "authorized_user": UserCredentials.from_authorized_user_info,
        }[info["type"]]
        return cast("Credentials", make(info, scopes=_SCOPES))
    except (ValueError, KeyError, TypeError, GoogleAuthError):
        # Without the cause, which may quote what it could not read.
        raise TaskFailedError(
            f"{where}: This is no JSON key of a service account, nor a user's login. Other kinds are found "
            "through GOOGLE_APPLICATION_CREDENTIALS."
        ) from None


def _told(store: str, error: GoogleAuthError) -> TaskFailedError | StoreUnavailableError:
    if isinstance(error, TransportError) or error.retryable:
        return StoreUnavailableError(f"{store}: No token could be fetched: {error}")
    advice = _ADVICE if isinstance(error, DefaultCredentialsError) else "Check the credentials."
    return TaskFailedError(f"{store}: The login failed: {error} {advice}")
