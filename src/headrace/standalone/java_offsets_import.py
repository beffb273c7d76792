"""The offsets of a standalone Java worker, taken over when a worker of ours takes its place."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headrace.connect.errors import ConfigError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.storage.java_offsets_file import OffsetsFileError, java_offsets
from headrace.storage.protocols import ConfigStore, OffsetStore

_log = logging.getLogger(__name__)
_KEY: Final = "offset.storage.file.filename"
_IMPORT: Final = "offsets.import"
_BEGUN, _DONE = "begun", "done"


def import_java_offsets(file_name: str, store: OffsetStore, settings: ConfigStore) -> None:
    """Put the offsets in a Java worker's file into *store*, if that is empty and this was not done before.

    *settings* remembers it, also when the store was not empty: offsets that are reset later do not come
    back. Whoever dies half way does all of it again. A file that is missing or empty has no offsets, as in
    Kafka Connect, and is looked for again by the next start.

    Called once at a worker's start, before anything runs, by the thread that owns *store*. Raises
    :class:`~headrace.connect.errors.ConfigError` for a file that cannot be read, and what the store raises.
    """
    progress = settings.setting(_IMPORT)
    if progress == _DONE:
        return
    store.refresh()
    # What is there after a beginning was put there by it.
    if progress is None and not store.is_empty():
        _log.info(
            "The offsets in %s (%s) are not taken over: this worker has offsets already. headrace offsets "
            "import takes those of a single connector.",
            file_name,
            _KEY,
        )
        settings.put_setting(_IMPORT, _DONE)
        return
    found = _read(Path(file_name))
    if not found:
        _log.info("There are no offsets to take over in %s (%s).", file_name, _KEY)
        return
    settings.put_setting(_IMPORT, _BEGUN)
    for connector, offsets in found.items():
        store.put(connector, offsets)
    settings.put_setting(_IMPORT, _DONE)
    names = ", ".join(sorted(found))
    _log.info("The offsets of %s were taken over from %s (%s).", names, file_name, _KEY)


def _read(path: Path) -> Mapping[str, Mapping[SourcePartition, SourceOffset]]:
    try:
        return java_offsets(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, OffsetsFileError) as error:
        told = error.strerror if isinstance(error, OSError) else str(error)
        sentence = f"{path} cannot be read: {(told or '').rstrip('.')}."
        raise ConfigError([(_KEY, sentence)], where="The worker's configuration") from error
