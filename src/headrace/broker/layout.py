"""Which files a broker has in its folder, and wiping them."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headrace.broker.properties import LOG_CONFIG
from headrace.broker.state import STATE_FILE
from headrace.connect.errors import ConnectError
from headrace.jvm.cache import locked

TAIL_LINES = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The places of one broker: *folder* holds what it stores, *log_folder* what it says."""

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
        """What the broker says."""
        return self.log_folder / "broker.log"

    @property
    def log_config(self) -> Path:
        """How the broker's logging is set up."""
        return self.folder / "log4j2.properties"

    @property
    def is_formatted(self) -> bool:
        """Whether Kafka has made its storage here."""
        return (self.stored / "meta.properties").is_file()

    def make(self) -> None:
        """Make the folders and the logging's configuration."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.log_folder.mkdir(parents=True, exist_ok=True)
            self.log_config.write_text(LOG_CONFIG)
        except OSError as error:
            raise ConnectError(
                f"The broker's folder {error.filename} cannot be made: {error.strerror}. "
                "Choose another one with --data and --log."
            ) from error

    def wipe(self) -> None:
        """Remove all that the broker stored; refuses a folder where no broker was started before."""
        if self.stored.exists() and not (self.folder / STATE_FILE).is_file():
            raise ConnectError(
                f"{self.folder} was not made by this command, so nothing in it is removed. "
                "Choose another folder with --data, or remove it yourself."
            )
        shutil.rmtree(self.stored, ignore_errors=True)
        self.log_file.unlink(missing_ok=True)

    @contextmanager
    def alone(self) -> Generator[None]:
        """Hold the folder, so that two starts at once do not both start a broker."""
        with locked(self.folder / "lock"):
            yield

    def log_tail(self) -> str:
        """The last lines of what the broker said."""
        if not self.log_file.is_file():
            return ""
        lines = self.log_file.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        return "\n".join(f"  {line}" for line in lines)
