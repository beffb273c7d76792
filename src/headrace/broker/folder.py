"""The folder of a broker: its settings, its storage, and the state of its process."""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from headrace.connect.errors import ConnectError
from headrace.jvm.cache import locked
from headrace.pids import identity_of

STATE_FILE = "headrace-broker.json"
# Each with the reason why Kafka's own default does not suit a single node that is started often.
DEFAULTS = {
    # There is only one node to replicate to.
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Fifty partitions each, by default, that have to be loaded at every start.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "1",
    # Consumers of a test need not wait three seconds for more members.
    "group.initial.rebalance.delay.ms": "0",
    # A killed broker may register again only when its old session is over: nine seconds by default.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    # 128 MB of the heap by default, and compaction here is small.
    "log.cleaner.dedupe.buffer.size": "16777216",
    # Records with old timestamps would be gone within minutes, by Kafka's default of a week.
    "log.retention.ms": "-1",
    "auto.create.topics.enable": "true",
    "num.partitions": "1",
}
LOG_CONFIG = """\
status = warn
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %p %m (%c{1})%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""
TAIL_LINES = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerState:
    """A broker as it was started. *pid* is 0 while none runs that this package started."""

    pid: int
    identity: str
    port: int
    controller_port: int
    log_file: str

    @property
    def is_running(self) -> bool:
        """Whether exactly that process lives; another one with the same pid does not count."""
        return self.pid > 0 and identity_of(self.pid) == self.identity

    @property
    def bootstrap(self) -> str:
        """The ``bootstrap.servers`` of clients."""
        return f"127.0.0.1:{self.port}"


def read_state(folder: Path) -> BrokerState | None:
    """The state in *folder*; None when no broker was ever started there. Raises ConnectError for a damaged file."""
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
    """Store *state* in *folder*, atomically."""
    new = folder / f"{STATE_FILE}.new"
    new.write_text(json.dumps(asdict(state), indent=2) + "\n")
    new.replace(folder / STATE_FILE)


def server_properties(
    *, port: int, controller_port: int, log_dirs: Path, overrides: Mapping[str, str]
) -> dict[str, str]:
    """All properties of the broker; *overrides* win."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "log.dirs": str(log_dirs),
        **DEFAULTS,
        **overrides,
    }


def as_text(properties: Mapping[str, str]) -> str:
    """*properties* in the form of a Java properties file."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in properties.items())


def _escaped(text: str) -> str:
    # Java reads these files as Latin-1, where a backslash, a blank in a key, ":" and "=" are syntax.
    special = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", " ": "\\ ", ":": "\\:", "=": "\\="}
    return "".join(
        special.get(letter) or (letter if letter.isascii() else _as_utf16(letter))
        for letter in text
    )


def _as_utf16(letter: str) -> str:
    units = letter.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The paths of one broker: *folder* holds what it stores, *log_folder* its log."""

    folder: Path
    log_folder: Path

    @property
    def stored(self) -> Path:
        """The broker's own ``log.dirs``."""
        return self.folder / "kafka"

    @property
    def settings(self) -> Path:
        """The properties file that the broker was started with."""
        return self.folder / "server.properties"

    @property
    def log_file(self) -> Path:
        """The output of the broker."""
        return self.log_folder / "broker.log"

    @property
    def log_config(self) -> Path:
        """The configuration of the broker's logging."""
        return self.folder / "log4j2.properties"

    @property
    def is_formatted(self) -> bool:
        """Whether Kafka's storage has been formatted here."""
        return (self.stored / "meta.properties").is_file()

    def make(self) -> None:
        """Make the folders and the logging's configuration."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.log_folder.mkdir(parents=True, exist_ok=True)
            self.log_config.write_text(LOG_CONFIG)
        except OSError as error:
            raise ConnectError(
                f"The broker's folder {error.filename} cannot be created: {error.strerror}. "
                "Choose another one with --data and --log."
            ) from error

    def wipe(self) -> None:
        """Remove all that the broker stored; refuses a folder where no broker was started before."""
        if self.stored.exists() and not (self.folder / STATE_FILE).is_file():
            raise ConnectError(
                f"{self.folder} was not created by this command, so nothing in it is removed. "
                "Choose another folder with --data, or remove it yourself."
            )
        shutil.rmtree(self.stored, ignore_errors=True)
        self.log_file.unlink(missing_ok=True)

    @contextmanager
    def alone(self) -> Generator[None]:
        """Lock the folder, so that of two simultaneous starts only one starts a broker."""
        with locked(self.folder / "lock"):
            yield

    def log_tail(self) -> str:
        """The last lines of the broker's log."""
        if not self.log_file.is_file():
            return ""
        lines = self.log_file.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        return "\n".join(f"  {line}" for line in lines)
