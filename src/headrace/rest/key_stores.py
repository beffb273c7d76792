"""Key and trust stores of listeners: which form a file has, and PKCS12 as the PEM that OpenSSL reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from headrace.key_stores import Pkcs12, advice, form_of


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyStore:
    """The bytes of a store's file."""

    content: bytes = field(repr=False)
    is_pkcs12: bool

    @classmethod
    def of(cls, content: bytes, declared: str | None, place: str) -> Self:
        """The store in *content*, of the *declared* type, or of the one that its bytes show.

        Raises ``ValueError`` with a sentence that says how to convert other ones.
        """
        kind = (declared or "JKS").strip().upper()
        # Java reads PKCS12 under the name of its own form, too, which is its default.
        if kind == "JKS":
            kind = form_of(content)
        if kind not in {"PEM", "PKCS12"}:
            raise ValueError(
                f"Stores of type {kind} cannot be read, only PEM and PKCS12. {advice(place)}"
            )
        return cls(content=content, is_pkcs12=kind == "PKCS12")


def pkcs12_as_pem(content: bytes, password: str, key_password: str) -> bytes:
    """The key (if any) and the certificates of a PKCS12 store, the key encrypted with *key_password*.

    Raises ``ValueError`` with a sentence.
    """
    try:
        store = Pkcs12(content, password.encode())
    except ImportError:
        raise ValueError(
            "Reading PKCS12 needs: pip install 'headrace[pkcs12]'. Or convert the store to PEM "
            "with: openssl pkcs12 -in STORE -out STORE.pem"
        ) from None
    except ValueError:
        raise ValueError("It cannot be opened as PKCS12 with the password given.") from None
    return store.key(key_password) + store.certificates()
