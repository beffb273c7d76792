"""Imports the offsets file of a standalone Java worker, once, when a worker that replaces it starts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from headrace.connect.errors import ConfigError, ReplanError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.offsets.java_file import OffsetsFileError, java_offsets
from headrace.runtime.fencing import Ownership
from headrace.runtime.services import RunSpec, Services
from headrace.storage.protocols import SettingStore

_KEY: Final = "offset.storage.file.filename"
_IMPORT: Final = "offsets.import"
_BEGUN, _DONE = "begun", "done"

_log = logging.getLogger(__name__)


def import_java_offsets(
    file_name: str,
    services: Services,
    spec_of: Callable[[str], RunSpec],
    settings: SettingStore,
) -> None:
    """Import the offsets of a Java worker's file, if this worker has none yet and this was not done before.

    This is recorded in the worker's *settings*, also when there were offsets: offsets that are reset later do not come
    back. An interrupted import is continued at the next start. A file that is missing or empty has no offsets, as in
    Kafka Connect, and is tried again at the next start.

    Called once at a worker's start, before anything runs. *spec_of* returns settings to write with, also for a connector
    that does not exist. Raises :class:`~headrace.connect.errors.ConfigError` for a file that cannot be read,
    :class:`~headrace.connect.errors.ConnectorFencedError` when another worker takes over one of the connectors meanwhile,
    and what the store raises.
    """
    progress = settings.setting(_IMPORT)
    if progress == _DONE:
        return
    # After an interrupted import the store may have some of its offsets.
    if services.offsets.worker.has_any() and progress is None:
        _log.info(
            "The offsets in %s (%s) are not imported: this worker already has offsets. Import those of a single "
            "connector with: headrace offsets import.",
            file_name,
            _KEY,
        )
        settings.put_setting(_IMPORT, _DONE)
        return
    found = _read(Path(file_name))
    if not found:
        _log.info("There are no offsets to import in %s (%s).", file_name, _KEY)
        return
    settings.put_setting(_IMPORT, _BEGUN)
    for connector, offsets in found.items():
        _add_missing(spec_of(connector), offsets, services)
    settings.put_setting(_IMPORT, _DONE)
    names = ", ".join(sorted(found))
    _log.info("The offsets of %s were imported from %s (%s).", names, file_name, _KEY)


def _add_missing(
    spec: RunSpec, offsets: Mapping[SourcePartition, SourceOffset], services: Services
) -> None:
    """Commit those of *offsets* whose partitions have none, as the connector's driver.

    Another worker may have delivered records since this one has found no offsets: overwriting its offsets would send
    these records again.
    """
    stored = services.offsets.of(spec)
    # A connector without missing offsets is not taken from a worker that may run it.
    if offsets.keys() <= stored.current().known().keys():
        return
    ownership = Ownership(spec, services)
    try:
        while True:
            ownership.fence(give_up=lambda: False)
            read = stored.current()
            missing = {each: offsets[each] for each in offsets if read.offset(each) is None}
            try:
                if missing:
                    ownership.commit(missing, planned_from=read)
            except ReplanError as error:
                _log.info("%s", error)
            else:
                return
    finally:
        ownership.close()


def _read(path: Path) -> Mapping[str, Mapping[SourcePartition, SourceOffset]]:
    try:
        return java_offsets(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, OffsetsFileError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        sentence = f"{path} cannot be read: {(reason or '').rstrip('.')}."
        raise ConfigError([(_KEY, sentence)], where="The worker's configuration") from error
