"""Finds plugins, validates configurations of workers and connectors, and makes connectors of valid ones."""

from __future__ import annotations

from headrace.plugins.connector_plugins import Plugins
from headrace.plugins.connector_spec import ValidatedConnector, offsets_group, run_spec
from headrace.plugins.connector_validator import PluginConnectorValidator
from headrace.plugins.discovery import PluginPath
from headrace.plugins.sql_step import SqlCheck, no_sql_check
from headrace.plugins.validation import validated_connector, validated_connectors
from headrace.plugins.worker_validation import checked_worker, checked_worker_of

__all__ = [
    "PluginConnectorValidator",
    "PluginPath",
    "Plugins",
    "SqlCheck",
    "ValidatedConnector",
    "checked_worker",
    "checked_worker_of",
    "no_sql_check",
    "offsets_group",
    "run_spec",
    "validated_connector",
    "validated_connectors",
]
