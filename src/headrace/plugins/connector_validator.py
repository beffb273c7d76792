"""Validates configurations, lists plugins, and makes connectors for a herder."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from headrace.config.aliases import JAVA_ALIASES, UnknownConnectorError
from headrace.config.connector_config import CONNECTOR_CLASS, connector_version
from headrace.config.providers import Resolution, resolved_in
from headrace.config.secret_values import is_secret_key
from headrace.config.worker_config import WorkerConfig
from headrace.connect.connector import PlannedConnector, SourceConnector
from headrace.connect.setting import HIDDEN, Setting
from headrace.herder.answers import ConfigInfos, Plugin
from headrace.herder.errors import BadRequestError, NotFoundError, RequestError, ServerError
from headrace.plugins.config_def import framework_settings
from headrace.plugins.connector_plugins import Plugins
from headrace.plugins.connector_spec import ValidatedConnector, run_spec
from headrace.plugins.sql_step import SqlCheck, no_sql_check
from headrace.plugins.validation import checked_connector, validation
from headrace.plugins.versions import check_version, version_ranges
from headrace.runtime.services import RunSpec

_log = logging.getLogger(__name__)
_JAVA: Final = frozenset(JAVA_ALIASES)
_WRAPPED: Final = "org.apache.kafka.connect.runtime.rest.errors.BadRequestException"


class PluginConnectorValidator:
    """See :class:`~headrace.herder.services.ConnectorValidator`. Any thread may call.

    *group_id* is the worker's name in Kafka, which specifications need. *validated* are connectors that have been
    validated, with their warnings logged, and are used at their first start. *sql* checks expressions of Spark SQL, as far
    as that is possible without waiting for Spark.
    """

    def __init__(
        self,
        worker: WorkerConfig,
        group_id: str,
        *,
        plugins: Plugins | None = None,
        validated: Sequence[ValidatedConnector] = (),
        sql: SqlCheck = no_sql_check,
    ) -> None:
        self._worker = worker
        self._group_id = group_id
        self._sql = sql
        self._plugins = plugins or Plugins(worker)
        self._warned = {each.name: each.warnings for each in validated}
        self._ready = {each.name: each for each in validated}

    def plugins(self) -> Sequence[Plugin]:
        """See :class:`~headrace.herder.services.ConnectorValidator`."""
        return self._plugins.listed()

    def plugin_settings(self, name: str, version: str | None = None) -> Sequence[Setting]:
        """See :class:`~headrace.herder.services.ConnectorValidator`.

        The plugin's own come first. Raises ``NotFoundError`` for an unknown name, ``BadRequestError`` for a
        version that is not there, and ``ServerError`` for a class that is not a plugin.
        """
        converters = self._plugins.converters
        if converters.has(name):
            full = converters.full_name(name)
            check_version(full, version, converters.version(name))
            return converters.settings(name)
        for stages in self._plugins.stages.values():
            config = stages.config(name)
            if config is not None:
                check_version(stages.full_name(name), version, stages.version(name))
                return config.settings()
        connector = self._named_plugin(name)
        found = connector_version(connector)
        check_version(self._plugins.full_name(name), version, found)
        own = connector.config_class.settings()
        names = {each.name for each in own}
        shared = framework_settings(found)
        return (*own, *(each for each in shared if each.name not in names))

    def connector_version(self, name: str) -> str | None:
        """See :class:`~headrace.herder.services.ConnectorValidator`."""
        try:
            return connector_version(self._plugins.connector_class(name))
        except UnknownConnectorError:
            return None

    def may_have_offset_group(self, name: str) -> bool:
        """See :class:`~headrace.herder.services.ConnectorValidator`."""
        try:
            found = self._plugins.connector_class(name)
        except UnknownConnectorError:
            return False
        return found.offset_group is not SourceConnector.offset_group

    def is_polled(self, name: str) -> bool | None:
        """See :class:`~headrace.herder.services.ConnectorValidator`."""
        try:
            found = self._plugins.connector_class(name)
        except UnknownConnectorError:
            return None
        return not issubclass(found, PlannedConnector)

    def validate(self, config: Mapping[str, str | None], plugin: str | None = None) -> ConfigInfos:
        """See :class:`~headrace.herder.services.ConnectorValidator`."""
        if plugin is not None:
            self._refuse_mismatch(config, plugin)
        try:
            return self._validated(config)
        except BadRequestError as error:
            if plugin is None:
                raise
            raise ServerError(f"{_WRAPPED}: {error}") from error

    def resolved(self, config: Mapping[str, str | None]) -> Resolution:
        """See :class:`~headrace.herder.services.ConnectorValidator`."""
        return resolved_in(self._worker.originals, config)

    def run_spec(self, submitted: Resolution) -> RunSpec:
        """See :class:`~headrace.herder.services.ConnectorValidator`.

        Warnings about settings without effect are logged once, and again only when they change.
        """
        made = self._ready.pop(submitted.resolved.get("name") or "", None)
        if made is None or made.given != submitted.given or made.props != submitted.props():
            made = checked_connector(submitted, self._worker, self._plugins)
        if self._warned.get(made.name) != made.warnings:
            self._warned[made.name] = made.warnings
            for warning in made.warnings:
                _log.warning("Connector %s: %s", made.name, warning)
        return run_spec(made, self._worker, self._group_id)

    def _validated(self, config: Mapping[str, str | None]) -> ConfigInfos:
        submitted = self.resolved(config)
        named = submitted.resolved.get(CONNECTOR_CLASS)
        if named is None:
            raise BadRequestError(f"Connector config {_shown(config)} contains no connector type")
        try:
            connector = self._plugins.connector(named)
        except UnknownConnectorError as error:
            raise BadRequestError(submitted.masked(str(error))) from None
        try:
            version_ranges(submitted.resolved.get("connector.plugin.version"))
        except ValueError as error:
            raise BadRequestError(submitted.masked(str(error))) from None
        with submitted.masked_exceptions():
            return validation(submitted, connector, self._worker, self._plugins, sql=self._sql)

    def _named_plugin(self, name: str) -> type[SourceConnector]:
        try:
            return self._plugins.connector_class(name)
        except UnknownConnectorError as error:
            raise self._no_plugin(name) from error

    def _no_plugin(self, name: str) -> RequestError:
        # A class that can be loaded need not be a plugin.
        if self._plugins.may_load(name):
            return ServerError("Instantiation error")
        return NotFoundError(f"Unknown plugin {name}.")

    def _refuse_mismatch(self, config: Mapping[str, str | None], plugin: str) -> None:
        named = config.get(CONNECTOR_CLASS)
        if named is None or _normal(named).endswith(_normal(plugin)):
            return
        # Kafka Connect has no short names, and no packages with colons.
        if not {named, plugin} & _JAVA and self._plugins.same(named, plugin):
            return
        raise BadRequestError(
            f"Included connector type {named} does not match request type {plugin}"
        )


def _normal(name: str) -> str:
    return name.removesuffix("Connector")


def _shown(config: Mapping[str, str | None]) -> str:
    """*config* as Java shows a map. No setting defines its keys, so values are hidden by the names of keys."""
    texts = (
        f"{key}={HIDDEN if is_secret_key(key) else 'null' if value is None else value}"
        for key, value in config.items()
    )
    return f"{{{', '.join(texts)}}}"
