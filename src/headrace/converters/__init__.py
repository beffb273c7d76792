"""From columns of Connect values to columns of bytes: strings, bytes, numbers, JSON; and header values to bytes."""

from headrace.converters.catalogue import (
    BYTES_CONVERTER,
    JAVA_NAMES,
    Role,
    converter_class,
    converter_classes,
    converter_problems,
    converter_settings,
    header_converter_classes,
    is_bytes,
    make_converter,
    make_header_converter,
    needs_schema,
)

__all__ = [
    "BYTES_CONVERTER",
    "JAVA_NAMES",
    "Role",
    "converter_class",
    "converter_classes",
    "converter_problems",
    "converter_settings",
    "header_converter_classes",
    "is_bytes",
    "make_converter",
    "make_header_converter",
    "needs_schema",
]
