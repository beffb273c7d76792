"""Placeholders resolved in this worker, whose log then never shows what they stand for."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.observe.form import hide_in_logs
from headrace.runtime.providers.catalogue import providers_of
from headrace.runtime.providers.resolution import Resolution, resolution


def resolved_in(worker: Mapping[str, str], config: Mapping[str, str | None]) -> Resolution:
    """*config* with the placeholders of the providers that the *worker*'s configuration names replaced.

    May read files. What cannot be replaced is among the answer's problems. Any thread may call.
    """
    found = resolution(config, providers_of(worker))
    hide_in_logs(found.secrets)
    return found
