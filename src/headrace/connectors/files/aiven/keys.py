"""What becomes of each key of Aiven's S3 source: one table, from which its documentation is made. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerKey:
    """*name* is the key; *told* says what it means here, why it has no effect, or what to do instead.

    *becomes* is the key that it is translated to, *was* a name that it had before.
    """

    name: str
    told: str
    becomes: str = ""
    was: str = ""


TRANSLATED: Final = (
    PeerKey(
        name="topic",
        becomes="topic",
        told="Goes before what the object's key tells.",
    ),
    PeerKey(
        name="file.name.template",
        becomes="files.name.regex",
        told="Required. The same pattern, found anywhere in the key; objects without it are left out.",
    ),
    PeerKey(
        name="input.format",
        becomes="files.format",
        told="`avro`, `bytes` (default), `jsonl`, `parquet`; `csv`, too.",
    ),
    PeerKey(
        name="transformer.max.buffer.size",
        becomes="files.bytes.per.record",
        told="For `bytes`; 4096 by default, at most 256 MiB.",
    ),
    PeerKey(
        name="file.compression.type",
        becomes="files.compression",
        told="`none` by default, whatever the object's name says; not for Parquet.",
    ),
    PeerKey(
        name="distribution.type",
        becomes="the share of each task",
        told="`object_hash` (default) or `partition`, with the formulas of the original.",
    ),
    PeerKey(
        name="native.start.key",
        becomes="files.start.after",
        told="Only keys that sort behind it are read.",
    ),
    PeerKey(
        name="max.poll.records",
        becomes="files.batch.max.rows",
        told="Only where it is set: 500 would cost speed.",
    ),
    PeerKey(
        name="aws.s3.bucket.name",
        becomes="files.path",
        was="aws_s3_bucket",
        told="Required.",
    ),
    PeerKey(
        name="aws.s3.prefix",
        becomes="files.path",
        was="aws_s3_prefix",
        told="Exactly this text, all levels below it; names that begin with a dot are read, too.",
    ),
    PeerKey(
        name="aws.s3.region",
        becomes="s3.region",
        was="aws_s3_region",
        told="`us-east-1` by default.",
    ),
    PeerKey(
        name="aws.s3.endpoint",
        becomes="s3.endpoint",
        was="aws_s3_endpoint",
        told="Buckets then stand in the path. `https://` where no scheme is given.",
    ),
    PeerKey(
        name="aws.s3.fetch.page.size",
        becomes="s3.page.size",
        told="Only where it is set, and at most 1000.",
    ),
    PeerKey(
        name="aws.access.key.id",
        becomes="s3.access.key.id",
        was="aws_access_key_id",
        told="With its secret; else the usual chain is asked.",
    ),
    PeerKey(
        name="aws.secret.access.key",
        becomes="s3.secret.access.key",
        was="aws_secret_access_key",
        told="",
    ),
    PeerKey(
        name="aws.credentials.provider",
        becomes="s3.anonymous",
        told="The AWS SDK's own providers stand for the usual chain, and its anonymous one for no "
        "credentials; any other class is refused. With an access key it has no effect.",
    ),
    PeerKey(name="aws.s3.backoff.delay.ms", becomes="s3.retry.backoff.ms", told=""),
    PeerKey(name="aws.s3.backoff.max.delay.ms", becomes="s3.retry.backoff.max.ms", told=""),
    PeerKey(name="aws.s3.backoff.max.retries", becomes="s3.retries", told="5 by default."),
    PeerKey(
        name="extractor.csv.headers.enabled",
        becomes="csv.header",
        told="For `csv`, which only the original's framework has.",
    ),
    PeerKey(name="extractor.csv.headers", becomes="csv.names", told="For `csv`."),
)
"""The keys that mean something here."""

_SINK = "A key of the sink connector; a source writes no objects."
_REGISTRY = "Readers do not ask a registry; converters have `value.converter.schema.registry.url`."
_DONE = "What is done is known by committed offsets, not by the last keys, and has no limit."
_MISNAMED = "The original does not know this key."

UNUSED: Final = (
    PeerKey(name="ring.buffer.size", told=_DONE),
    PeerKey(name="aws.s3.fetch.buffer.size", told=_DONE),
    PeerKey(name="schema.registry.url", told=_REGISTRY),
    PeerKey(name="value.serializer", told=_REGISTRY),
    PeerKey(
        name="expected.max.message.bytes",
        told="The producer's `max.request.size` decides, and a record that is larger is a bad one.",
    ),
    PeerKey(
        name="kafka.retry.backoff.ms",
        told="The producer waits by its own settings, `producer.override.retry.backoff.ms`.",
    ),
    PeerKey(
        name="topic.partitions",
        told="The first versions looked for their offsets by it; here the store tells them.",
    ),
    PeerKey(name="file.prefix.template", told="The original's source does not use it either."),
    PeerKey(name="aws.sts.role.external.id", told="Only with `aws.sts.role.arn`."),
    PeerKey(name="aws.sts.role.session.name", told="Only with `aws.sts.role.arn`."),
    PeerKey(name="aws.sts.role.session.duration", told="Only with `aws.sts.role.arn`."),
    PeerKey(name="aws.sts.config.endpoint", told="Only with `aws.sts.role.arn`."),
    PeerKey(name="aws.s3.sse.algorithm", told=_SINK),
    PeerKey(name="aws.s3.part.size.bytes", told=_SINK),
    PeerKey(name="file.max.records", told=_SINK),
    PeerKey(name="file.name.timestamp.timezone", told=_SINK),
    PeerKey(name="file.name.timestamp.source", told=_SINK),
    PeerKey(name="format.output.type", told=_SINK),
    PeerKey(name="format.output.fields", told=_SINK),
    PeerKey(name="format.output.fields.value.encoding", told=_SINK),
    PeerKey(name="format.output.envelope", told=_SINK),
    PeerKey(name="output_fields", told=_SINK),
    PeerKey(name="poll.interval.ms", told=f"{_MISNAMED} The worker says how often it looks."),
    PeerKey(name="error.tolerance", told=f"{_MISNAMED} Write `errors.tolerance`."),
    PeerKey(name="timestamp.timezone", told=_MISNAMED),
    PeerKey(name="timestamp.source", told=_MISNAMED),
)
"""The keys that are accepted and have no effect."""

REFUSED: Final = (
    PeerKey(
        name="aws.sts.role.arn",
        told="Take the role by a profile of the AWS configuration files (role_arn, external_id, "
        "role_session_name and so on, on every machine that runs a slot), and name that in s3.profile.",
    ),
    PeerKey(
        name="topics",
        told="Name the one topic in topic. Earlier versions of the original sent records to the topic that "
        "the object's key tells, and only without one to the first of these.",
    ),
    PeerKey(
        name="output_compression",
        told="Say with file.compression.type how the objects are packed.",
    ),
    PeerKey(name="input.type", told="Say with input.format what the objects hold."),
)
"""The keys that cannot be obeyed."""

OLD_NAMES: Final[Mapping[str, str]] = {each.was: each.name for each in TRANSLATED if each.was}
"""Today's name of each key that had another one."""


def table() -> str:
    """What the documentation says about all of them, as three tables in Markdown."""
    translated = [_row(_names(each), _code(each.becomes), each.told) for each in TRANSLATED]
    return "\n".join(
        [
            "### Translated\n",
            *_head("key", "becomes", ""),
            *translated,
            "\n### Accepted, without effect\n",
            *_head("key", "why"),
            *(_row(_names(each), each.told) for each in UNUSED),
            "\n### Refused\n",
            *_head("key", "what to do"),
            *(_row(_names(each), each.told) for each in REFUSED),
        ]
    )


def _names(key: PeerKey) -> str:
    return f"`{key.name}`, `{key.was}`" if key.was else f"`{key.name}`"


def _code(text: str) -> str:
    return text if " " in text else f"`{text}`"


def _head(*titles: str) -> tuple[str, str]:
    return _row(*titles), "|" + "---|" * len(titles)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
