"""A connector that tells its secrets wherever it can."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from headrace.connect.config import Config, Problem, setting
from headrace.connect.connector import SourceConnector
from headrace.connect.errors import OffsetsError
from headrace.connect.setting import Password
from headrace.connect.task import Offsets, Polled, SourceTask

_log = logging.getLogger(__name__)


class LeakyConfig(Config):
    """One secret is a password, the other one is just a text."""

    password: Password = setting(doc="A password.")
    pin: str = setting(doc="A text.")
    count: int = setting(default=1, doc="A number.")

    def check(self) -> Iterator[Problem]:
        """Show both."""
        if "check" in self.originals:
            yield "pin", f"Invalid value {self.pin} for configuration pin: {self.password.value!r}"


class LeakyTask(SourceTask):
    """Fails with what it was given."""

    def start(self, config: Mapping[str, str]) -> None:
        """Log it, and raise it, one error within the other."""
        _log.warning("A task starts with %s", dict(config))
        try:
            raise KeyError(config["pin"])
        except KeyError as error:
            raise ValueError(f"cannot log in at {config['url']}") from error

    def poll(self) -> Polled:
        """Never."""
        return None

    def stop(self) -> None:
        """Nothing."""


class LeakyConnector(SourceConnector):
    """Does as the key ``leak`` says."""

    config_class: ClassVar[type[Config]] = LeakyConfig
    task_class: ClassVar[type[SourceTask]] = LeakyTask

    def start(self, props: Mapping[str, str]) -> None:
        """Log the secrets, and fail if that is asked for."""
        self._props = props
        _log.warning("The connector starts with %r", dict(props))
        if props.get("leak") == "start":
            raise OSError(2, "No such file", f"/{props['password']}/{props['pin']}")

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """With a secret in another key."""
        url = f"https://me:{self._props['password']}@{self._props['pin']}"
        return [{**self._props, "url": url, "pin.of.task": self._props["pin"]}]

    def problems(self, props: Mapping[str, str]) -> tuple[Problem, ...]:
        """Fail if that is asked for."""
        if props.get("leak") == "problems":
            raise RuntimeError(f"what is {props['pin']}?")
        return super().problems(props)

    def alter_offsets(self, props: Mapping[str, str], offsets: Offsets) -> bool:
        """Refuse with a secret."""
        raise OffsetsError(f"{props['pin']} allows no offsets")
