"""Key and trust stores: which form a file has, and PKCS12 as the PEM that OpenSSL reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

_PEM_BEGINS = b"-----BEGIN"
_JKS_BEGINS = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")


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
        kind = (declared or _seen(content)).strip().upper()
        # Java reads PKCS12 under the name of its own form, too, which is its default.
        if kind == "JKS" and not content.startswith(_JKS_BEGINS):
            kind = _seen(content)
        if kind not in {"PEM", "PKCS12"}:
            raise ValueError(
                f"Stores of type {kind} cannot be read, only PEM and PKCS12. Convert it: keytool "
                f"-importkeystore -srckeystore {place} -destkeystore {place}.p12 "
                "-deststoretype PKCS12"
            )
        return cls(content=content, is_pkcs12=kind == "PKCS12")


def pkcs12_as_pem(content: bytes, password: str, key_password: str) -> bytes:
    """The key (if any) and the certificates of a PKCS12 store, the key encrypted with *key_password*.

    Raises ``ValueError`` with a sentence.
    """
    try:
        # Only those who have such a store need the library.
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
        from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415
    except ImportError:
        raise ValueError(
            "Reading PKCS12 needs: pip install 'headrace[pkcs12]'. Or convert the store to PEM "
            "with: openssl pkcs12 -in STORE -out STORE.pem"
        ) from None
    try:
        store = pkcs12.load_pkcs12(content, password.encode())
    except ValueError:
        raise ValueError("It cannot be opened as PKCS12 with the password given.") from None
    pieces = list[bytes]()
    if store.key is not None:
        pieces.append(
            store.key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.BestAvailableEncryption(key_password.encode())
                if key_password
                else serialization.NoEncryption(),
            )
        )
    certificates = [each for each in (store.cert, *store.additional_certs) if each is not None]
    pieces += [each.certificate.public_bytes(serialization.Encoding.PEM) for each in certificates]
    return b"".join(pieces)


def _seen(content: bytes) -> str:
    if _PEM_BEGINS in content[:65536]:
        return "PEM"
    return "JKS" if content.startswith(_JKS_BEGINS) else "PKCS12"
