"""Names as Avro allows them: checked, or made fit as Confluent's converter does."""

from __future__ import annotations

import re
from urllib.parse import quote_plus

from headrace.connect.errors import RecordError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNFIT = re.compile(r"[^A-Za-z0-9_]")


def fit_name(name: str, *, scrub: bool) -> str:
    """*name*, or what ``scrub.invalid.names`` makes of it. Pure.

    Raises :class:`~headrace.connect.errors.RecordError` for a name that Avro does not allow.
    """
    if _NAME.fullmatch(name):
        return name
    if scrub and name:
        return _scrubbed(name)
    raise RecordError(
        f"{name!r} cannot be a name in an Avro schema.",
        row=0,
        advice="Set scrub.invalid.names=true to have such names changed, or rename it in the source.",
    )


def split_name(full_name: str, *, scrub: bool) -> tuple[str, str]:
    """Namespace, empty if there is none, and name of *full_name*; both as :func:`fit_name` has them."""
    space, _, name = full_name.rpartition(".")
    parts = [fit_name(part, scrub=scrub) for part in space.split(".")] if space else []
    return ".".join(parts), fit_name(name, scrub=scrub)


def _scrubbed(name: str) -> str:
    """*name* as Java encodes it for a URL, with underscores for what is still not allowed."""
    encoded = quote_plus(name, safe="*", errors="replace").replace("~", "%7E")
    prefix = "x" if encoded[0].isdecimal() else ""
    return _UNFIT.sub("_", prefix + encoded)
