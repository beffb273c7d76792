"""Brings authors' modules to Spark's Python processes, which may run on other machines."""

from __future__ import annotations

import importlib.util
import logging
import zipfile
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import SparkSession

from headrace.connect.errors import TaskFailedError

_log = logging.getLogger(__name__)


def ship(session: SparkSession, modules: Iterable[str], folder: Path) -> None:
    """Make the top-level *modules* importable in every slot of *session*; archives are made in *folder*.

    Called once per session, before its first job. Raises
    :class:`~headrace.connect.errors.TaskFailedError` for a module that is not made of Python files.
    """
    for module in sorted(set(modules)):
        archive = packed(module, folder)
        session.addArtifacts(str(archive), pyfile=True)
        _log.debug("Shipped %s to Spark", module)


def packed(module: str, folder: Path) -> Path:
    """A zip file in *folder* from which Python imports the top-level *module*."""
    spec = importlib.util.find_spec(module)
    origin = None if spec is None or spec.origin is None else Path(spec.origin)
    if spec is None or origin is None or origin.suffix != ".py":
        raise TaskFailedError(
            f"The module {module} cannot be shipped to Spark: it is no Python file."
        )
    archive = folder / f"{module}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        if not spec.submodule_search_locations:
            target.write(origin, origin.name)
        else:
            for each in sorted(origin.parent.rglob("*.py")):
                target.write(each, each.relative_to(origin.parent.parent))
    return archive
