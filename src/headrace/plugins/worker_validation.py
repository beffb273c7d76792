"""Checks workers' configurations."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from headrace.class_path import make_importable
from headrace.config.client_settings import worker_client_warnings
from headrace.config.config_files import config_texts
from headrace.config.providers import resolved_in
from headrace.config.rules import ConverterCheck, every_worker_problem
from headrace.config.secret_values import spark_problems
from headrace.config.worker_config import (
    WorkerConfig,
    misspelt_servers,
    servers_problems,
    worker_warnings,
)
from headrace.connect.config import Problem
from headrace.connect.errors import ConfigError
from headrace.plugins.connector_plugins import Plugins
from headrace.plugins.discovery import PluginPath, absolute_path

_log = logging.getLogger(__name__)
_SERVERS: Final = "bootstrap.servers"
_PLUGIN_PATH: Final = "plugin.path"
WHERE: Final = "The worker's configuration"
OtherProblems: TypeAlias = Callable[[Mapping[str, str]], Iterable[Problem]]
"""More checks of a worker's resolved settings."""
Worker = TypeVar("Worker", bound=WorkerConfig)


def checked_worker(
    props: Mapping[str, object],
    *,
    where: str = WHERE,
    folder: Path | None = None,
    also: OtherProblems | None = None,
) -> WorkerConfig:
    """The configuration of a worker that stands alone; otherwise as :func:`checked_worker_of`."""
    return checked_worker_of(WorkerConfig, props, where=where, folder=folder, also=also)


def checked_worker_of(
    kind: type[Worker],
    props: Mapping[str, object],
    *,
    where: str = WHERE,
    folder: Path | None = None,
    also: OtherProblems | None = None,
) -> Worker:
    """The configuration of a worker of this *kind*; *where* it was read, such as a file's path, is reported with its problems.

    Numbers and booleans are taken as text, and placeholders of its providers resolved. Relative folders of
    ``plugin.path`` lie in *folder*, by default the working directory; from then on they are imported from. Raises
    :class:`~headrace.connect.errors.ConfigError` with all problems, among them those that *also* finds in
    what is resolved.
    """
    texts = config_texts(props, where=where)
    submitted = resolved_in(texts, texts)
    problems = [
        *submitted.problems,
        *spark_problems(texts, submitted.props()),
        *servers_problems(texts),
    ]
    reported = {key for key, _ in problems}
    given = _placed(submitted.props(), folder or Path.cwd())
    # An unresolved placeholder fails other checks only because it is unresolved.
    found = (*every_worker_problem(given, _converter_check, kind), *(also(given) if also else ()))
    problems += [(key, submitted.masked(what)) for key, what in found if key not in reported]
    if problems:
        # A problem names this key already.
        misspelt = misspelt_servers(texts)
        rest = {key: value for key, value in texts.items() if key != misspelt}
        raise ConfigError(problems, where=where, warnings=worker_warnings(rest, kind))
    config = kind.parse(given)
    if _SERVERS not in texts:
        servers = ",".join(config.bootstrap_servers)
        _log.info("%s is not set: the default, %s, is used.", _SERVERS, servers)
    plugin_path = PluginPath(config.plugin_path)
    for warning in (
        *worker_warnings(texts, kind),
        *worker_client_warnings(config),
        *plugin_path.warnings(),
        *Plugins(config).converters.unknown_key_warnings(texts),
    ):
        _log.warning("%s", warning)
    return config


def _converter_check(worker: WorkerConfig) -> ConverterCheck:
    """The check of the converters of *worker*, among them those of its plugins."""
    make_importable(PluginPath(worker.plugin_path).folders)
    return Plugins(worker).converters.problems


def _placed(props: Mapping[str, str], folder: Path) -> Mapping[str, str]:
    placed = absolute_path(props.get(_PLUGIN_PATH, ""), folder)
    return {**props, _PLUGIN_PATH: placed} if placed else props
