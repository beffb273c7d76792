"""The source framework: an author describes a source in a few small classes, and the rest is here."""

from headrace.formats.by_name import FormatOptions
from headrace.formats.compression import Compression
from headrace.formats.csv.dialect import CsvDialect
from headrace.sources.config import SourceConfig
from headrace.sources.connector import NativeConnector
from headrace.sources.evolving import EvolvingRecord
from headrace.sources.extractor import Extractor, StreamExtractor, ValueExtractor, extractor_named
from headrace.sources.item import UNKNOWN_LENGTH, Context, NativeItem, NotAStreamError
from headrace.sources.keys import KeyCodec, NumberKeys, TextKeys
from headrace.sources.offset_entry import OffsetEntry, OffsetKey
from headrace.sources.planned import PlannedNativeConnector
from headrace.sources.source import NativeSource
from headrace.sources.task import NativeSourceTask

__all__ = [
    "UNKNOWN_LENGTH",
    "Compression",
    "Context",
    "CsvDialect",
    "EvolvingRecord",
    "Extractor",
    "FormatOptions",
    "KeyCodec",
    "NativeConnector",
    "NativeItem",
    "NativeSource",
    "NativeSourceTask",
    "NotAStreamError",
    "NumberKeys",
    "OffsetEntry",
    "OffsetKey",
    "PlannedNativeConnector",
    "SourceConfig",
    "StreamExtractor",
    "TextKeys",
    "ValueExtractor",
    "extractor_named",
]
