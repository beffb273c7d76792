"""Java's key stores and trust stores as the client's settings: PEM and PKCS12. Reads the stores' files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headrace.key_stores import Form, Pkcs12, advice, form_of

Problems = list[tuple[str, str]]

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----([^-]*)-----END \1-----")
_PEM_LINE: Final = 64


def settle_stores(
    given: Mapping[str, str], settings: dict[str, str | int | bool], problems: Problems
) -> None:
    """Replace Java's names of stores in *settings* by the client's; *given* are the user's settings.

    Problems are added to *problems* by the user's keys, and show no password.
    """
    for key in ("ssl.truststore.type", "ssl.keystore.type", "ssl.truststore.password"):
        settings.pop(key, None)
    _settle_inline(settings)
    for store, settle, rival in (
        ("ssl.truststore", _trust, "certificates"),
        ("ssl.keystore", _identify, "key"),
    ):
        location = settings.pop(f"{store}.location", None)
        if not location:
            continue
        try:
            if given.get(f"{store}.{rival}"):
                raise ValueError(f"{store}.{rival} is set as well. Leave one of them out.")
            settings.update(settle(str(location), given))
        except ValueError as error:
            problems.append((f"{store}.location", str(error)))


def _settle_inline(settings: dict[str, str | int | bool]) -> None:
    """Break certificates and keys into lines: Java takes them on one line of a properties file, OpenSSL does not."""
    for key in ("ssl.ca.pem", "ssl.certificate.pem", "ssl.key.pem"):
        if key in settings:
            settings[key] = _in_lines(str(settings[key]))


def _trust(location: str, given: Mapping[str, str]) -> dict[str, str]:
    """The settings of a trust store."""
    if _kind(location, given.get("ssl.truststore.type")) == "PEM":
        return {"ssl.ca.location": location}
    # The client takes PKCS12 for keys only.
    return {"ssl.ca.pem": _certificates(location, given.get("ssl.truststore.password"))}


def _identify(location: str, given: Mapping[str, str]) -> dict[str, str]:
    """The settings of a key store."""
    if _kind(location, given.get("ssl.keystore.type")) == "PKCS12":
        return {"ssl.keystore.location": location}
    return {"ssl.certificate.location": location, "ssl.key.location": location}


def _kind(location: str, declared: str | None) -> Form:
    """The form of the file; raises ``ValueError`` for one that cannot be read, with how to convert it."""
    kind = (declared or "JKS").strip().upper()
    if kind == "PEM":
        return "PEM"
    if kind in ("JKS", "PKCS12"):
        # Java's default is JKS, under which Java also reads PKCS12.
        kind = form_of(_content(location))
        if kind != "JKS":
            return kind
    raise ValueError(
        f"Stores of type {kind} are not supported, only PKCS12 and PEM. {advice(location)}"
    )


def _certificates(location: str, password: str | None) -> str:
    """The certificates of a PKCS12 store as PEM."""
    content = _content(location)
    try:
        found = Pkcs12(content, password.encode() if password else None).certificates()
    except ValueError:
        raise ValueError(
            f"The file {location!r} cannot be opened as PKCS12 with ssl.truststore.password."
        ) from None
    if not found:
        raise ValueError(f"There are no certificates in the file {location!r}.")
    return found.decode()


def _content(location: str) -> bytes:
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise ValueError(f"The file {location!r} cannot be read: {error.strerror}.") from None


def _in_lines(pem: str) -> str:
    return _BLOCK.sub(_block, pem)


def _block(found: re.Match[str]) -> str:
    label, body = found.groups()
    if ":" in body:
        # A key in the old format, whose headers are separate lines.
        return found[0]
    text = "".join(body.split())
    lines = [text[at : at + _PEM_LINE] for at in range(0, len(text), _PEM_LINE)]
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----\n"))
