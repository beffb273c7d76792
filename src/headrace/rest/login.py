"""HTTP basic authentication: the equivalent of Kafka Connect's extension of that name."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping
from pathlib import Path

from headrace.connect.errors import ConfigError
from headrace.rest.errors import HttpError

CREDENTIALS_KEY = "rest.basic.auth.credentials.file"
"""The setting that names the file."""

_BLANKS = " \t\f"


class BasicLogin:
    """Accepts users by their *passwords*, a map from names to passwords."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = {user.encode(): password.encode() for user, password in passwords.items()}

    def user(self, authorization: str | None) -> str:
        """The user that a header ``Authorization`` authenticates; raises 401 for wrong or missing credentials."""
        user, password = _credentials(authorization or "")
        expected = self._passwords.get(user)
        # Compared for unknown users as well, so that response times do not reveal which users exist.
        is_right = hmac.compare_digest(password, expected or b"")
        if expected is None or not is_right:
            raise HttpError(
                401,
                "User cannot access the resource.",
                headers={"WWW-Authenticate": 'Basic realm="headrace", charset="UTF-8"'},
            )
        return user.decode()


def passwords_in(path: Path) -> dict[str, str]:
    """The users and passwords of a file with one ``user=password`` a line, ``#`` before comments.

    As in Java's properties, blanks before a password are not part of it, and those after it are. Raises
    :class:`~headrace.connect.errors.ConfigError`, which never shows a line, because it may hold a password.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError([(CREDENTIALS_KEY, f"{path} cannot be read: {reason}.")]) from None
    passwords = dict[str, str]()
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith(("#", "!")):
            continue
        user, separator, rest = line.partition("=")
        password = rest.lstrip(_BLANKS)
        if not separator or not user.strip() or not password:
            raise ConfigError([(CREDENTIALS_KEY, f"Line {number} of {path} is not user=password.")])
        passwords[user.strip()] = password
    if not passwords:
        raise ConfigError([(CREDENTIALS_KEY, f"{path} names no user, so no one could log in.")])
    return passwords


def _credentials(authorization: str) -> tuple[bytes, bytes]:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return b"", b""
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True)
    except (binascii.Error, ValueError):
        return b"", b""
    user, _, password = decoded.partition(b":")
    return user, password
