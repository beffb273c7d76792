"""Storage accounts of Azure: where they are and what proves who asks."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from headrace.stores.network_settings import is_endpoint

_SUFFIX = "core.windows.net"
_ADVICE = "Copy it again from the account's page."
_NO_ENDPOINT = (
    "Its BlobEndpoint, or the address that DefaultEndpointsProtocol, AccountName and EndpointSuffix make, must "
    "begin with http:// or https:// and the server's name, and have no user, password, query or fragment."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account; of *key* and *sas* one is given at most, and without both a token is needed.

    *sas* is the signature as the parameters that each request carries.
    """

    name: str
    endpoint: str
    key: bytes | None = field(default=None, repr=False)
    sas: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    anonymous: bool = False

    @classmethod
    def of(
        cls,
        *,
        name: str,
        endpoint: str | None,
        key: str | None = None,
        sas: str | None = None,
        anonymous: bool = False,
    ) -> Account:
        """The account that these texts describe. Raises ``ValueError``, which shows no secret."""
        return cls(
            name=name,
            endpoint=(endpoint or f"https://{name}.blob.{_SUFFIX}").rstrip("/"),
            key=_key(key) if key else None,
            sas=_signature(sas) if sas else {},
            anonymous=anonymous,
        )

    @property
    def needs_token(self) -> bool:
        """Whether a token has to be fetched."""
        return not (self.key or self.sas or self.anonymous)


def of_connection_string(text: str) -> Account:
    """The account that *text* describes. Raises ``ValueError``, which shows no secret."""
    parts: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(";"))):
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError(
                f"A connection string is made of NAME=VALUE;…, this one not. {_ADVICE}"
            )
        parts[name.lower()] = value
    name, key, sas = (
        parts.get(each) for each in ("accountname", "accountkey", "sharedaccesssignature")
    )
    scheme = parts.get("defaultendpointsprotocol", "https")
    usual = f"{scheme}://{name}.blob.{parts.get('endpointsuffix', _SUFFIX)}"
    endpoint = parts.get("blobendpoint") or (usual if name else "")
    if endpoint and not is_endpoint(endpoint):
        raise ValueError(f"{_NO_ENDPOINT} {_ADVICE}")
    if not name:
        # A string with a signature names the account in its endpoint alone.
        name = endpoint.partition("://")[2].partition(".")[0]
    if not name or not (key or sas):
        raise ValueError(
            "It needs AccountName or BlobEndpoint, and AccountKey or SharedAccessSignature. "
            + _ADVICE
        )
    # As Azure's own clients do: a key is taken before a signature.
    return Account.of(name=name, endpoint=endpoint, key=key, sas=None if key else sas)


def _key(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError(f"The account's key is not base64. {_ADVICE}") from None


def _signature(text: str) -> Mapping[str, str]:
    # A plus sign is no space here: portals show signatures with and without encoding.
    found = dict(parse_qsl(text.strip().removeprefix("?").replace("+", "%2B")))
    if "sig" not in found:
        raise ValueError(f"The shared access signature has no sig=…. {_ADVICE}")
    return found
