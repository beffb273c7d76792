"""What ``headrace.connect`` offers to authors of connectors is exact."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from headrace import connect

# Public within headrace, but nothing that a connector's author needs.
_PLUMBING = frozenset(
    {
        "check_exact",
        "JsonNull",
        "Declared",
        "JavaReplacement",
        "Limits",
        "OffsetsByNames",
        "Paired",
        "RegexText",
        "SettingOptions",
        "as_partition",
        "character_class",
        "checked_values",
        "column_of",
        "complement",
        "document",
        "every_problem",
        "conformed",
        "java_double",
        "java_float",
        "java_floats",
        "java_regex",
        "java_replacement",
        "json_quoted",
        "of_names",
        "opened",
        "parsed",
        "property_class",
        "regex_problem",
        "schema_of",
        "set_command",
        "shared_escape",
        "struct_schema",
        "taken_headers",
        "translated",
        "trimmed_as_java",
        "under",
    }
)


def _defined() -> Iterator[str]:
    for module in pkgutil.iter_modules(connect.__path__):
        loaded = importlib.import_module(f"headrace.connect.{module.name}")
        for name, value in vars(loaded).items():
            if not name.startswith("_") and getattr(value, "__module__", "") == loaded.__name__:
                yield name


def test_every_public_class_and_function_is_offered():
    """A class or function of a module of ``connect`` is either exported or known to be plumbing."""
    assert set() == set(_defined()) - set(connect.__all__) - _PLUMBING


def test_no_name_is_offered_twice_or_missing():
    """Each name of ``__all__`` is there, and there once."""
    assert len(connect.__all__) == len(set(connect.__all__))
    assert [] == [name for name in connect.__all__ if not hasattr(connect, name)]


def test_plumbing_is_not_offered():
    """What is listed as plumbing is not exported."""
    assert set() == _PLUMBING & set(connect.__all__)
