"""The settings of the files connector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Literal

from headrace.connect.config import Problem
from headrace.connect.setting import Setting, SettingType, setting, trimmed_as_java
from headrace.connectors.files.cleanup.after_commit import after_commit_problems
from headrace.connectors.files.distribution import distribution_problems
from headrace.connectors.files.encoding_problems import encoding_problems
from headrace.connectors.files.format_config import FormatConfig
from headrace.connectors.files.formats import plain_problems
from headrace.connectors.files.naming.config import NamingConfig
from headrace.connectors.files.place_problems import place_problems
from headrace.connectors.files.records.facts import FACTS, LAST
from headrace.connectors.files.records.fields import (
    entries_problem,
    field_problems,
    fields_of,
)
from headrace.connectors.files.records.headers import header_problems
from headrace.connectors.files.records.schema import text_problem
from headrace.connectors.files.selecting.addresses import Root, Selector, root_of
from headrace.connectors.files.selecting.config import SelectionConfig
from headrace.connectors.files.selecting.round_config import RoundConfig
from headrace.connectors.files.splitting import split_problems
from headrace.connectors.files.tail import tail_problems
from headrace.connectors.files.tracking.config import TrackingConfig, tracking_problems
from headrace.connectors.files.without_effect import format_problems, growth_problems
from headrace.formats.compression import Compression, by_name
from headrace.stores.catalogue import KINDS
from headrace.stores.store import Store

_MIB = 1024 * 1024


class FilesConfig(SelectionConfig, FormatConfig, RoundConfig, NamingConfig, TrackingConfig):
    """What to read, how to understand it, and where to send it."""

    path: tuple[str, ...] = setting(
        "files.path",
        importance="high",
        non_empty=True,
        valid=lambda paths: None if paths else "Name at least one folder, file or glob.",
        doc="Folders, files or globs on local disk, or prefixes or globs in one store, such as "
        "s3://bucket/prefix, comma separated. Every machine that runs a slot must see local files under the "
        "same path. Names that begin with a dot are left out, unless their dot is written out, as in .*/*.jsonl.",
    )
    format: Literal["auto", "jsonl", "csv", "avro", "parquet", "lines", "bytes"] = setting(
        "files.format",
        default="auto",
        importance="high",
        doc="jsonl: each line is one JSON document. csv: each row becomes a JSON object. avro, parquet: "
        "each record or row is a struct with its schema. lines: each line is one string. bytes: the file in pieces, each of them bytes as they are. auto: by the file's extension (.jsonl, .ndjson, .csv, .tsv, .avro, .parquet, .parq, .txt, .log).",
    )
    compression: Literal["auto", "none", "gzip", "zstd", "bzip2", "xz", "snappy", "lz4"] = setting(
        "files.compression",
        default="auto",
        doc="How files are packed. auto: by the extensions .gz, .zst, .bz2, .xz, .sz, .snappy and .lz4; "
        "with another extension by the first bytes, where they are no text.",
    )
    recursive: bool = setting(
        "files.recursive", default=False, doc="Whether to read the folders inside a folder, too."
    )
    follow: bool = setting(
        "files.follow",
        default=False,
        doc="On local disk: whether files are followed as they grow. A last line is then read when its line end "
        "arrives, however long that takes, and a packed file goes on, too.",
    )
    min_age_ms: int = setting(
        "files.min.age.ms",
        kind=SettingType.LONG,
        default=2000,
        at_least=0,
        doc="On local disk: how long a file must be untouched before a last line without line end counts "
        "as a record, and before a compressed file, a Parquet file, or with the header or field last any file "
        "is read. "
        "The later one of its times of modification and of change counts, so that a copy that keeps the old "
        "time is not taken for an old file.",
    )
    headers: tuple[str, ...] = setting(
        "files.headers",
        default=(),
        one_of=FACTS,
        doc="Headers that each record gets, comma separated: name (the path or address), size (bytes), modified "
        "(when the file was changed, in milliseconds since 1970), record (the record's number in the file, from 1), position (the byte "
        "behind it, of JSON lines, CSV and lines; records of other formats do not get it), last (whether it is the "
        "file's last one). They are called file.name and so on.",
    )
    field_entries: tuple[str, ...] = setting(
        "files.fields",
        default=(),
        valid=entries_problem,
        doc="Fields that each record of CSV, Avro and Parquet files gets behind its own ones, comma separated: as in "
        "files.headers, and behind a colon the field's name, such as name:source,record. Default name: file_name "
        "and so on.",
    )
    schema_text: str | None = setting(
        "files.schema",
        default=None,
        valid=text_problem,
        doc="An Avro schema, as JSON, that the records of all files get: Avro, Parquet, and CSV with "
        "csv.schemas.enable. Fields are found by their names; others are left out, missing ones are null or have "
        "their default, numbers become wider. Where a file's own schema does not allow that, the connector fails. "
        "Default: each file's records have its own schema.",
    )
    split_bytes: int = setting(
        "files.split.bytes",
        kind=SettingType.LONG,
        default=0,
        at_least=0,
        doc="Read a larger file in ranges of so many bytes, several at a time. Order then holds within a "
        "range. 0 reads each file in order, in one slot. Files are cut between lines, Avro blocks or Parquet row "
        "groups, which belong to the range that they begin in. A CSV file is cut where csv.quote is none, "
        "csv.header is false and csv.names names the fields, without csv.escape, csv.skip.lines and inferred "
        "types. Compressed files and the format bytes are not cut; with "
        "files.format=auto they are read whole. In a store it needs files.compression=none, unless files.format is avro or parquet.",
    )
    changed: Literal["fail", "reread", "ignore", "tail"] = setting(
        "files.changed",
        default="fail",
        doc="What to do with a file that does not begin any more with what was sent of it, or that was "
        "replaced after it was read to its end, or with an object of a store that has another version: fail, "
        "reread it from its beginning, ignore it from then on, or tail: where it is longer now, read on from "
        "where it was read to, and take what is before that for the same; else fail. tail is for JSON lines, "
        "CSV and lines that are not compressed; in a store it needs files.compression=none.",
    )
    missing: Literal["fail", "ignore"] = setting(
        "files.missing",
        default="fail",
        doc="What to do when a file vanishes before it was read to its end.",
    )
    after_commit: Literal["keep", "delete", "move", "tag"] = setting(
        "files.after.commit",
        default="keep",
        doc="What to do with a file once all its records are committed: keep it, delete it, move it to "
        "files.move.to, or tag the object with files.tag.",
    )
    move_to: str = setting(
        "files.move.to",
        default="",
        doc="For files.after.commit=move: a folder on local disk, in one that exists, or in a store a prefix in "
        "the same bucket, such as s3://bucket/done/.",
    )
    tags: tuple[str, ...] = setting(
        "files.tag",
        default=(),
        doc="For files.after.commit=tag: tags as name=value, comma separated.",
    )
    distribution: Literal["size", "hash", "partition"] = setting(
        "files.distribution",
        default="size",
        doc="Which slot reads which files. size: all slots get nearly the same number of bytes. hash: a "
        "file's name says its slot, always the same one. partition: one slot reads all files of a Kafka "
        "partition, which files.partition or their names have to tell, in the order of their names.",
    )
    max_line_bytes: int = setting(
        "files.max.line.bytes",
        default=_MIB,
        at_least=1,
        at_most=1024 * _MIB,
        doc="The longest line or CSV row in bytes; a longer one is an error and is never held in memory.",
    )
    batch_max_rows: int = setting(
        "files.batch.max.rows", default=20_000, at_least=1, doc="The most records in one batch."
    )
    batch_max_bytes: int = setting(
        "files.batch.max.bytes",
        default=2 * _MIB,
        at_least=4096,
        at_most=256 * _MIB,
        doc="How many bytes of a file are read and sent as one batch.",
    )

    @classmethod
    def settings(cls) -> tuple[Setting, ...]:
        """Its own settings, and those of every store."""
        return (*super().settings(), *(each for kind in KINDS.values() for each in kind.settings()))

    @property
    def given(self) -> AbstractSet[str]:
        """The keys that a user set themselves."""
        return self.originals.keys()

    @property
    def tolerates_errors(self) -> bool:
        """What ``errors.tolerance`` says, which is a setting of every connector."""
        return trimmed_as_java(self.originals.get("errors.tolerance", "")) == "all"

    @property
    def root(self) -> Root | None:
        """The store that ``files.path`` speaks of; ``None`` for local disk."""
        found = root_of(self.path[0])
        return found and found[0]

    @property
    def fields(self) -> Mapping[str, str]:
        """What records tell in fields of their own, and what those are called."""
        return fields_of(self.field_entries)

    @property
    def tells_last(self) -> bool:
        """Whether records say whether they are their file's last one."""
        return LAST in self.headers or LAST in self.fields

    @property
    def takes_away(self) -> bool:
        """Whether what was read to its end is taken away, so that its name is free for another file."""
        return self.after_commit in ("delete", "move")

    @property
    def selectors(self) -> tuple[Selector, ...]:
        """What is selected in the store."""
        return tuple(found[1] for found in map(root_of, self.path) if found)

    def open_store(self, root: Root) -> Store:
        """The store at *root*, with its settings; asks nothing of it.

        Raises :class:`~headrace.connect.errors.TaskFailedError` for what its library does not accept.
        """
        return KINDS[root.scheme].open(root.place, self.originals)

    def check(self) -> Iterator[Problem]:
        """Rules across settings."""
        yield from super().check()
        yield from place_problems(self)
        yield from after_commit_problems(self)
        yield from tracking_problems(self)
        yield from header_problems(self)
        yield from field_problems(self)
        yield from plain_problems(self)
        yield from distribution_problems(self)
        yield from tail_problems(self)
        yield from encoding_problems(self)
        yield from format_problems(self)
        yield from growth_problems(self)
        if self.follow and (self.max_objects_per_round or self.max_bytes_per_round):
            told = "A file that always grows would keep others from being read. Remove it"
            yield (
                "files.follow",
                f"{told}, or files.max.objects.per.round and files.max.bytes.per.round.",
            )
        if self.format == "parquet" and self.compression not in ("auto", "none"):
            yield (
                "files.compression",
                "A Parquet file compresses its own pages; another compression around it is not read.",
            )
        yield from split_problems(self)

    def packing(self, path: str) -> Compression:
        """How the file at *path* is packed, as far as the settings and its name tell."""
        return by_name(path) if self.compression == "auto" else Compression(self.compression)
