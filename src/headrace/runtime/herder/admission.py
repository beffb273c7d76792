"""What a herder asks of those who know plugins and converters: which configurations may come in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from headrace.connect.setting import Setting
from headrace.runtime.herder.answers import ConfigInfos, Plugin
from headrace.runtime.providers.resolution import Resolution
from headrace.runtime.services import RunSpec


class Admission(Protocol):
    """Judges configurations and makes connectors of them; starts nothing. Any thread may call."""

    def plugins(self) -> Sequence[Plugin]:
        """Everything that a configuration may name, in Kafka Connect's order."""
        ...

    def plugin_settings(self, name: str, version: str | None = None) -> Sequence[Setting]:
        """The settings of a plugin; of a connector those of every connector, too.

        Raises :class:`~headrace.runtime.herder.errors.RequestError` for a name that is no plugin's.
        """
        ...

    def validate(self, config: Mapping[str, str | None], plugin: str | None = None) -> ConfigInfos:
        """Everything there is to say about *config*; *plugin* is the one in the request's path, if any.

        Raises :class:`~headrace.runtime.herder.errors.RequestError` where Kafka Connect answers with an
        error instead: there is no class, or it is no plugin's.
        """
        ...

    def resolved(self, config: Mapping[str, str | None]) -> Resolution:
        """*config* with the placeholders of the worker's providers replaced; may read files, raises nothing."""
        ...

    def admitted(self, config: Mapping[str, str]) -> RunSpec:
        """A fresh, un-started connector with every setting resolved, of a *config* that is valid.

        Called for each start and for each hook. Raises :class:`~headrace.connect.errors.ConfigError`.
        """
        ...
