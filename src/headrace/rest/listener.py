"""An address at which requests are answered, as the configuration writes it: ``http://host:port``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

_FORM = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]{1,9})")
_LAST_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """*host* is empty for all interfaces, an IPv6 address without brackets; *port* is 0 for a free one."""

    protocol: str
    host: str
    port: int

    @classmethod
    def parsed(cls, text: str) -> Self:
        """The listener that *text* names. Raises ``ValueError`` with Kafka Connect's sentence."""
        match = _FORM.fullmatch(text)
        if not match:
            raise ValueError("Listener doesn't have the right format (protocol://hostname:port).")
        protocol, host, port = match[1].lower(), match[2], int(match[3])
        if protocol not in {"http", "https"}:
            raise ValueError('Listener protocol must be either "http" or "https".')
        if not 0 <= port <= _LAST_PORT:
            raise ValueError(f"The port of a listener must be between 0 and {_LAST_PORT}.")
        return cls(protocol=protocol, host=host, port=port)

    def __str__(self) -> str:
        return f"{self.protocol}://{in_url(self.host)}:{self.port}"


def in_url(host: str) -> str:
    """*host* as a URL has it: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host
