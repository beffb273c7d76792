"""Which configurations are let in, what is told of those that are not, and which plugins there are."""

from headrace.admission.admission import ConnectorAdmission
from headrace.admission.between import SqlJudge, no_judge
from headrace.admission.checked_connectors import Admitted, admitted, all_admitted
from headrace.admission.plugin_path import PluginPath
from headrace.admission.plugins import Plugins
from headrace.admission.run_specs import run_spec
from headrace.admission.worker import checked_worker

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
