"""From columns of Connect values to columns of bytes: strings, bytes, numbers, JSON; and header values to bytes."""

from headrace.converters.catalogue import (
    JAVA_NAMES,
    Role,
    converter_class,
    converter_classes,
    converter_problems,
    converter_settings,
    header_converter_classes,
    make_converter,
    make_header_converter,
    needs_schema,
)

__all__ = [
    "JAVA_NAMES",
    "Role",
    "converter_class",
    "converter_classes",
    "converter_problems",
    "converter_settings",
    "header_converter_classes",
    "make_converter",
    "make_header_converter",
    "needs_schema",
]
