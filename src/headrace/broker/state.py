"""What is remembered of a running broker, in a file in its folder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from headrace.connect.errors import ConnectError
from headrace.pids import identity_of

STATE_FILE = "headrace-broker.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerState:
    """A broker as it was started. *pid* is 0 when none was started since it was last stopped."""

    pid: int
    identity: str
    port: int
    controller_port: int
    log_file: str

    @property
    def is_running(self) -> bool:
        """Whether that very process lives; another one with the same pid does not count."""
        return self.pid > 0 and identity_of(self.pid) == self.identity

    @property
    def bootstrap(self) -> str:
        """What clients take as ``bootstrap.servers``."""
        return f"127.0.0.1:{self.port}"


def read_state(folder: Path) -> BrokerState | None:
    """The state in *folder*; None when no broker was ever started there."""
    file = folder / STATE_FILE
    try:
        return BrokerState(**json.loads(file.read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise ConnectError(
            f"{file} cannot be read ({error}). Remove it when no broker runs on that folder."
        ) from error


def write_state(folder: Path, state: BrokerState) -> None:
    """Remember *state* in *folder*, all of it or nothing."""
    new = folder / f"{STATE_FILE}.new"
    new.write_text(json.dumps(asdict(state), indent=2) + "\n")
    new.replace(folder / STATE_FILE)
