"""Workers' configurations, checked."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from headrace.admission.plugin_path import PluginPath, absolute_path
from headrace.admission.plugins import Plugins
from headrace.connect.config import Problem
from headrace.connect.errors import ConfigError
from headrace.runtime.providers.resolving import resolved_in
from headrace.runtime.settings.client_problems import worker_client_warnings
from headrace.runtime.settings.config_rules import ConverterCheck, every_worker_problem
from headrace.runtime.settings.config_values import config_texts
from headrace.runtime.settings.secret_values import spark_problems
from headrace.runtime.settings.worker_config import WorkerConfig
from headrace.runtime.settings.worker_warnings import not_known, worker_warnings
from headrace.slot.plugin_folders import make_importable

_log = logging.getLogger(__name__)
_PLUGIN_PATH: Final = "plugin.path"


def checked_worker(
    props: Mapping[str, object],
    *,
    where: str = "The worker's configuration",
    folder: Path | None = None,
    also: Callable[[Mapping[str, str]], Iterable[Problem]] | None = None,
) -> WorkerConfig:
    """The worker's configuration; *where* it was read, such as a file's path, is told with its problems.

    Numbers and booleans are taken as text, and placeholders of its providers resolved. Relative folders of
    ``plugin.path`` lie in *folder*, by default the working directory; from then on they are imported from. Raises
    :class:`~headrace.connect.errors.ConfigError` with all problems, among them those that *also* finds in
    what is resolved.
    """
    texts = config_texts(props, where=where)
    submitted = resolved_in(texts, texts)
    problems = [*submitted.problems, *spark_problems(texts, submitted.props())]
    told = {key for key, _ in problems}
    given = _placed(submitted.props(), folder or Path.cwd())
    # What stands for a placeholder that cannot be resolved is wrong only because of that.
    found = (*every_worker_problem(given, _converter_check), *(also(given) if also else ()))
    problems += [(key, submitted.masked(what)) for key, what in found if key not in told]
    if problems:
        raise ConfigError(problems, where=where)
    config = WorkerConfig.parse(given)
    plugin_path = PluginPath(config.plugin_path)
    for warning in (
        *worker_warnings(texts),
        *worker_client_warnings(config),
        *plugin_path.warnings(),
        *map(not_known, Plugins(config).converters.unknown_keys(texts)),
    ):
        _log.warning("%s", warning)
    return config


def _converter_check(worker: WorkerConfig) -> ConverterCheck:
    """What judges the converters of *worker*, among them those of its plugins."""
    make_importable(PluginPath(worker.plugin_path).folders)
    return Plugins(worker).converters.problems


def _placed(props: Mapping[str, str], folder: Path) -> Mapping[str, str]:
    placed = absolute_path(props.get(_PLUGIN_PATH, ""), folder)
    return {**props, _PLUGIN_PATH: placed} if placed else props
