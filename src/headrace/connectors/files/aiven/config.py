"""The settings of ``files``, read from the keys of Aiven's S3 source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, Self

from headrace.connect.config import Problem
from headrace.connect.errors import ConfigError
from headrace.connect.setting import Setting
from headrace.connectors.files.aiven.keys import OLD_NAMES, REFUSED, UNUSED
from headrace.connectors.files.aiven.naming import regex_of
from headrace.connectors.files.aiven.peer_config import PeerConfig
from headrace.connectors.files.aiven.words import SAID_BY, problems_in_peers_words
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.selecting.addresses import ELSEWHERE, Selector

_MOST_KEYS_PER_PAGE: Final = 1000
_NO_MARKS: Final = (
    "The original knows no marks: under its names of partitions there is one offset for each object. Leave it "
    "out, or use the connector files with its own keys."
)
_DEFAULTS: Final[Mapping[str, str]] = {"json.null": "tombstone", "files.exclude": ""}
"""Defaults of the original for what it has no key for; a user may set them otherwise."""


@dataclass(frozen=True, kw_only=True)
class WholePrefix(Selector):
    """Every key that begins with *text*, taken as it is, without globs and hidden names."""

    @property
    def prefix(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] (it is cached there)
        """See :class:`~headrace.connectors.files.selecting.addresses.Selector`."""
        return self.text

    def against(self, key: str, *, recursive: bool) -> str | None:
        """See :class:`~headrace.connectors.files.selecting.addresses.Selector`."""
        return None if key.startswith(self.text) else ELSEWHERE


class AivenS3Config(FilesConfig):
    """A configuration of ``files`` that is written with the original's keys.

    Keys of ``files`` and of S3 that none of them stands for may be set besides, such as ``files.changed``.
    """

    @classmethod
    def parse(cls, props: Mapping[str, str], *, where: str = "") -> Self:
        """Read *props*; problems are told under the original's keys."""
        given = renamed(props)
        peer, problems = PeerConfig.read(given)
        told = [*_refused(given), *problems, *_doubled(given)]
        if peer is None:
            told += cls._wrong_besides(given)
        else:
            besides = {key: value for key, value in given.items() if key not in SAID_BY}
            try:
                config = super().parse({**_DEFAULTS, **besides, **translated(peer)})
            except ConfigError as error:
                # What the original's checks complain about may be wrong for ours as well.
                before = {key for key, _ in told}
                ours = problems_in_peers_words(error.problems)
                told += (each for each in ours if each[0] not in before)
            else:
                if not told:
                    return config
        raise ConfigError(told, where=where)

    @classmethod
    def _wrong_besides(cls, given: Mapping[str, str]) -> Iterator[Problem]:
        """Settings of ours that are wrong for themselves, while nothing is known of the original's."""
        peers = {each.name for each in PeerConfig.settings()} | SAID_BY.keys()
        _, problems = cls._read({**_DEFAULTS, **given})
        return (each for each in problems if each[0] in given and each[0] not in peers)

    @classmethod
    def settings(cls) -> tuple[Setting, ...]:
        """The original's, those without effect included, and ours that may be set besides."""
        peers = PeerConfig.settings()
        unused = (
            Setting(name=each.name, doc=each.told, default=None) for each in (*UNUSED, *REFUSED)
        )
        old = (
            Setting(name=was, doc=f"Write {name}.", default=None) for was, name in OLD_NAMES.items()
        )
        taken = {each.name for each in peers} | SAID_BY.keys()
        ours = (each for each in super().settings() if each.name not in taken)
        return (*peers, *unused, *old, *ours)

    def check(self) -> Iterator[Problem]:
        """Rules across settings, and what the original's offsets cannot say."""
        yield from super().check()
        if self.tracking == "ordered":
            yield "files.tracking", _NO_MARKS

    @property
    def given(self) -> AbstractSet[str]:
        """Without the keys that the original's are translated to, and those with defaults of the original."""
        return super().given - SAID_BY.keys() - _DEFAULTS.keys()

    @property
    def peer(self) -> PeerConfig:
        """What the original's keys say."""
        return PeerConfig.parse(self.originals)

    @property
    def selectors(self) -> tuple[Selector, ...]:
        """All keys that begin with the prefix."""
        return (WholePrefix(text=self.peer.aws_s3_prefix),)


def renamed(props: Mapping[str, str]) -> dict[str, str]:
    """*props* under today's names; a key that has both names keeps what the one of today says."""
    new = {OLD_NAMES[key]: value for key, value in props.items() if key in OLD_NAMES}
    return {**new, **{key: value for key, value in props.items() if key not in OLD_NAMES}}


def _refused(given: Mapping[str, str]) -> Iterator[Problem]:
    for each in REFUSED:
        if each.name in given:
            yield each.name, f"It cannot be obeyed here. {each.told}"


def _doubled(given: Mapping[str, str]) -> Iterator[Problem]:
    for key in given:
        if key in SAID_BY:
            yield key, f"{SAID_BY[key]} says it. Remove {key}."


def translated(peer: PeerConfig) -> dict[str, str]:
    """The keys of ``files`` that say what *peer* says, except the prefix, in which nothing is a glob."""
    form = peer.input_format.lower()
    made = {
        "files.path": f"s3://{peer.aws_s3_bucket_name}/",
        "files.recursive": "true",
        "files.format": form,
        "files.compression": "none" if form == "parquet" else peer.file_compression_type.lower(),
        "files.bytes.per.record": str(peer.transformer_max_buffer_size),
        "files.name.regex": regex_of(peer.file_name_template),
        "csv.header": str(peer.extractor_csv_headers_enabled).lower(),
        "csv.names": ",".join(peer.extractor_csv_headers),
        "s3.region": peer.aws_s3_region,
        "s3.anonymous": str(peer.is_anonymous).lower(),
    }
    return {**made, **_where_set(peer)}


def _where_set(peer: PeerConfig) -> dict[str, str]:
    page = peer.aws_s3_fetch_page_size
    key, secret = peer.aws_access_key_id, peer.aws_secret_access_key
    optional = {
        "files.start.after": peer.native_start_key,
        "files.batch.max.rows": peer.max_poll_records,
        "s3.endpoint": _with_scheme(peer.aws_s3_endpoint),
        "s3.page.size": None if page is None else min(page, _MOST_KEYS_PER_PAGE),
        "s3.access.key.id": None if key is None else key.value,
        "s3.secret.access.key": None if secret is None else secret.value,
        "s3.retry.backoff.ms": peer.aws_s3_backoff_delay_ms,
        "s3.retry.backoff.max.ms": peer.aws_s3_backoff_max_delay_ms,
        "s3.retries": peer.aws_s3_backoff_max_retries,
    }
    return {name: str(value) for name, value in optional.items() if value not in (None, "")}


def _with_scheme(endpoint: str | None) -> str | None:
    return f"https://{endpoint}" if endpoint and "://" not in endpoint else endpoint
