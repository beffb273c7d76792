"""Finds plugins, validates configurations of workers and connectors, and makes connectors of valid ones."""

from __future__ import annotations

from headrace.plugins.admission import ConnectorAdmission
from headrace.plugins.connector_plugins import Plugins
from headrace.plugins.connectors import Admitted, admitted, all_admitted, run_spec
from headrace.plugins.discovery import PluginPath
from headrace.plugins.sql_step import SqlJudge, no_judge
from headrace.plugins.worker_validation import checked_worker

__all__ = [
    "Admitted",
    "ConnectorAdmission",
    "PluginPath",
    "Plugins",
    "SqlJudge",
    "admitted",
    "all_admitted",
    "checked_worker",
    "no_judge",
    "run_spec",
]
