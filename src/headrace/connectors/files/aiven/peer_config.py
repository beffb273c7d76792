"""The settings of Aiven's S3 source, as far as they mean something here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

from headrace.connect.config import Config, Problem
from headrace.connect.setting import Password, SettingType, setting
from headrace.connectors.files.aiven.naming import regex_of, told_by
from headrace.connectors.files.naming.topics import topic_problem

PARTITION = "partition"
_SDK = re.compile(r"(software\.amazon\.awssdk\.auth\.credentials|com\.amazonaws\.auth)\.\w+")
_ANONYMOUS = "AnonymousCredentialsProvider"
_LOGIN_ADVICE = (
    "Leave it out to ask the usual chain (environment, shared files, web identity, the machine's role), or "
    "set an access key or s3.profile."
)


def _template_problem(template: str) -> str | None:
    try:
        regex_of(template)
    except ValueError as error:
        return str(error)
    return None


def _prefix_problem(prefix: str) -> str | None:
    filled_in = "{{" in prefix
    return "Name the beginning of keys as it is: nothing is filled in." if filled_in else None


def _bucket_problem(name: str) -> str | None:
    good = re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]", name)
    return None if good else "A bucket's name has 3 to 63 of a-z, 0-9, '.', '_' and '-'."


class PeerConfig(Config):
    """What the original's configuration says. Its own checks, defaults and bounds."""

    topic: str | None = setting(
        default=None,
        importance="high",
        non_empty=True,
        valid=topic_problem,
        doc="The topic to send to. Default: what the object's key tells by file.name.template.",
    )
    file_name_template: str = setting(
        importance="high",
        non_empty=True,
        valid=_template_problem,
        doc="A regular expression that is found somewhere in an object's key, with {{topic}}, {{partition}}, "
        "{{start_offset}} and {{timestamp}}; .* for any key.",
    )
    input_format: str = setting(
        default="bytes",
        importance="high",
        one_of=("avro", "bytes", "csv", "jsonl", "parquet"),
        ignore_case=True,
        doc="What the objects hold.",
    )
    transformer_max_buffer_size: int = setting(
        default=4096, at_least=1, doc="For input.format=bytes: how many bytes a record holds."
    )
    file_compression_type: str = setting(
        default="none",
        one_of=("none", "gzip", "snappy", "zstd"),
        ignore_case=True,
        doc="How the objects are packed.",
    )
    distribution_type: str = setting(
        default="object_hash",
        one_of=("object_hash", PARTITION),
        ignore_case=True,
        doc="Which task reads an object: by its key, or by its Kafka partition.",
    )
    native_start_key: str | None = setting(
        default=None, doc="Only objects whose keys sort behind it are read."
    )
    max_poll_records: int | None = setting(
        default=None, at_least=1, doc="The most records in one batch."
    )
    aws_s3_bucket_name: str = setting(
        importance="high",
        non_empty=True,
        valid=_bucket_problem,
        doc="The bucket.",
    )
    aws_s3_prefix: str = setting(
        default="",
        non_empty=True,
        valid=_prefix_problem,
        doc="What the keys of the objects to read begin with.",
    )
    aws_s3_region: str = setting(default="us-east-1", non_empty=True, doc="The bucket's region.")
    aws_s3_endpoint: str | None = setting(
        default=None, non_empty=True, doc="The address of an S3-compatible server."
    )
    aws_s3_fetch_page_size: int | None = setting(
        default=None, at_least=1, doc="How many keys a page lists."
    )
    aws_access_key_id: Password | None = setting(default=None, doc="The access key's id.")
    aws_secret_access_key: Password | None = setting(
        default=None, doc="The access key's secret part."
    )
    aws_credentials_provider: str | None = setting(
        default=None,
        kind=SettingType.CLASS,
        doc="A provider of the AWS SDK, without an access key.",
    )
    aws_s3_backoff_delay_ms: int | None = setting(
        default=None,
        kind=SettingType.LONG,
        at_least=1,
        doc="How long to wait before the first new attempt.",
    )
    aws_s3_backoff_max_delay_ms: int | None = setting(
        default=None,
        kind=SettingType.LONG,
        at_least=1,
        doc="The longest wait between two attempts.",
    )
    aws_s3_backoff_max_retries: int | None = setting(
        default=None, at_least=1, at_most=30, doc="How often to try again."
    )
    extractor_csv_headers_enabled: bool = setting(
        default=True, doc="For input.format=csv: whether the first row holds the fields' names."
    )
    extractor_csv_headers: tuple[str, ...] = setting(
        default=(), doc="For input.format=csv: the fields' names."
    )

    @classmethod
    def read(cls, props: Mapping[str, str]) -> tuple[Self | None, Sequence[Problem]]:
        """What *props* say where each setting is right for itself, and all that is wrong with them."""
        values, problems = cls._read(props)
        if problems:
            return None, problems
        peer = cls(originals=dict(props), **values)
        return peer, tuple(peer.check())

    @property
    def is_anonymous(self) -> bool:
        """Whether the store is asked without credentials."""
        provider = self.aws_credentials_provider or ""
        return self.aws_access_key_id is None and provider.endswith(f".{_ANONYMOUS}")

    def check(self) -> Iterator[Problem]:
        """Rules across settings."""
        groups = told_by(self.file_name_template)
        if self.topic is None and "topic" not in groups:
            yield "topic", "Set it, or tell it by a {{topic}} in file.name.template."
        if self.distribution_type.lower() == PARTITION and PARTITION not in groups:
            told = "distribution.type=partition needs a {{partition}} in file.name.template."
            yield "distribution.type", told
        provider = self.aws_credentials_provider
        if provider and self.aws_access_key_id is None and not _SDK.fullmatch(provider):
            told = f"The Java class {provider} cannot run here."
            yield "aws.credentials.provider", f"{told} {_LOGIN_ADVICE}"
