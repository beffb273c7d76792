"""Keys whose values are secrets by their names, where nothing defines them."""

from __future__ import annotations

from headrace.connect.setting_type import HIDDEN
from headrace.kafka.client_config import redacted


def is_secret_key(key: str) -> bool:
    """Whether the value of *key* is not to be shown, as far as its name tells. Pure."""
    lowered = key.lower()
    told = any(word in lowered for word in ("credential", "access.key", "user.info", "api.key"))
    return told or redacted({lowered: ""})[lowered] == HIDDEN
