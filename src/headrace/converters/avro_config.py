"""Settings of the Avro converter, named as Confluent's; unsupported ones are refused by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from headrace.connect.config import Config, Problem, setting
from headrace.connect.errors import RecordError
from headrace.connect.setting import Password
from headrace.converters.avro_schema import AvroJson, AvroRules
from headrace.converters.registry_client import RegistryAccess, basic_authorization
from headrace.converters.schema_ids import IdChoice, Origin

_PACKAGE = "io.confluent.kafka.serializers.subject."
TOPIC: Final = f"{_PACKAGE}TopicNameStrategy"
RECORD: Final = f"{_PACKAGE}RecordNameStrategy"
TOPIC_RECORD: Final = f"{_PACKAGE}TopicRecordNameStrategy"
STRATEGIES: Final = (TOPIC, RECORD, TOPIC_RECORD)
SHORT_NAMES: Final = tuple(each.removeprefix(_PACKAGE) for each in STRATEGIES)


def subject_of(strategy: str, topic: str, avro: AvroJson, *, is_key: bool) -> str:
    """The subject of the schema *avro* by one of ``STRATEGIES``, or by its name without the package.

    Pure. Raises :class:`~headrace.connect.errors.RecordError` for a schema without a name, where the
    strategy takes it.
    """
    strategy = strategy.removeprefix(_PACKAGE)
    if strategy == SHORT_NAMES[0]:
        return f"{topic}-{'key' if is_key else 'value'}"
    name = _record_name(avro, strategy, is_key=is_key)
    return name if strategy == SHORT_NAMES[1] else f"{topic}-{name}"


def _record_name(avro: AvroJson, strategy: str, *, is_key: bool) -> str:
    if not isinstance(avro, dict) or avro["type"] != "record":
        what = "key" if is_key else "value"
        raise RecordError(
            f"{strategy} takes the name of a record, but the {what}'s schema is none.",
            row=0,
            advice=f"Set {what}.subject.name.strategy={TOPIC}.",
        )
    return _full_name(avro)


def _full_name(avro: dict[str, Any]) -> str:
    space = avro.get("namespace")
    return f"{space}.{avro['name']}" if space else avro["name"]


_MILLISECONDS = 1000
_UNSUPPORTED: Mapping[str, str | None] = {
    "allow.optional.map.keys": "false",
    "auto.register.schemas.with.metadata": None,
    "bearer.auth.credentials.source": "STATIC_TOKEN",
    "context.name.strategy": "io.confluent.kafka.serializers.context.NullContextNameStrategy",
    "discard.type.doc.default": "false",
    "flatten.singleton.unions": "false",
    "generalized.sum.type.support": "false",
    "id.compatibility.strict": "true",
    "latest.cache.ttl.sec": "-1",
    "latest.compatibility.strict": "true",
    "propagate.schema.tags": "false",
    "proxy.host": "",
    "proxy.port": "-1",
    "schema.format": None,
    "schema.reflection": "false",
    "use.latest.with.metadata": None,
}
"""Confluent's keys that are not supported, each with the only value that is accepted."""
_HARMLESS: Final = frozenset(
    # Settings of Kafka Connect's JSON converter that often remain after the converter was changed, and
    # sizes of caches that do not exist here.
    ("schemas.enable", "schemas.cache.size", "converter.type", "latest.cache.size")
)


class AvroConverterConfig(Config):
    schema_registry_url: tuple[str, ...] = setting(
        importance="high",
        non_empty=True,
        doc="The schema registry: one URL, or several that are tried in turn.",
    )
    basic_auth_credentials_source: str = setting(
        default="URL",
        one_of=("URL", "USER_INFO"),
        doc="Where the user and password are: in the URL, or in basic.auth.user.info.",
    )
    basic_auth_user_info: Password | None = setting(
        default=None, doc="The user and the password, with a colon between them."
    )
    auto_register_schemas: bool = setting(
        default=True, doc="Register each new schema; otherwise it must be registered already."
    )
    use_latest_version: bool = setting(
        default=False,
        importance="low",
        doc="Use the newest version of the subject, which must describe the same bytes.",
    )
    use_schema_id: int = setting(
        default=-1,
        importance="low",
        doc="Use the schema with this id, which must describe the same bytes; -1 for none.",
    )
    normalize_schemas: bool = setting(
        default=False, doc="Let the registry ignore differences without a meaning."
    )
    key_subject_name_strategy: str = setting(
        default=TOPIC,
        one_of=(*STRATEGIES, *SHORT_NAMES),
        doc="How the subject of the schemas of keys is named.",
    )
    value_subject_name_strategy: str = setting(
        default=TOPIC,
        one_of=(*STRATEGIES, *SHORT_NAMES),
        doc="How the subject of the schemas of values is named.",
    )
    connect_meta_data: bool = setting(
        default=True,
        importance="low",
        doc="Write names, versions, docs and parameters of Connect's schemas into those of Avro.",
    )
    enhanced_avro_schema_support: bool = setting(
        default=False,
        importance="low",
        doc="Write strings that were enums in the source as enums.",
    )
    scrub_invalid_names: bool = setting(
        default=False,
        importance="low",
        doc="Change names that Avro does not allow; otherwise they are an error.",
    )
    ignore_default_for_nullables: bool = setting(
        default=False,
        importance="low",
        doc="Write a null as null, even if its schema has a default.",
    )
    schemas_cache_config: int = setting(
        default=1000,
        importance="low",
        at_least=1,
        doc="How many schemas are cached.",
    )
    max_schemas_per_subject: int = setting(
        default=1000,
        importance="low",
        at_least=1,
        doc="How many ids are cached, of all subjects together.",
    )
    http_connect_timeout_ms: int = setting(
        default=10_000,
        importance="low",
        at_least=1,
        doc="How long to wait for a connection. Confluent's is 60000.",
    )
    http_read_timeout_ms: int = setting(
        default=10_000,
        importance="low",
        at_least=1,
        doc="How long to wait for each part of an answer. Confluent's is 60000.",
    )
    max_retries: int = setting(
        default=3,
        importance="low",
        at_least=0,
        doc="How often all URLs are tried again before the slot gives up, and its work is planned again.",
    )
    retries_wait_ms: int = setting(
        default=100,
        importance="low",
        at_least=0,
        doc="The wait before they are tried again; it doubles each time. Confluent's is 1000.",
    )
    retries_max_wait_ms: int = setting(
        default=1000,
        importance="low",
        at_least=0,
        doc="The longest of these waits. Confluent's is 20000.",
    )

    def check(self) -> Iterator[Problem]:
        """Report settings that would be ignored, and invalid URLs. Contacts no registry."""
        yield from self._unsupported()
        for url in self.schema_registry_url:
            yield from _url_problems(url)
        yield from self._credential_problems()
        if self.auto_register_schemas and (self.use_latest_version or self.use_schema_id >= 0):
            key = "use.latest.version" if self.use_latest_version else "use.schema.id"
            yield key, f"{key} counts only with auto.register.schemas=false: set that, too."
        if self.use_latest_version and self.use_schema_id >= 0:
            yield "use.schema.id", "Set either use.latest.version or use.schema.id."

    @property
    def access(self) -> RegistryAccess:
        """How the registry is reached."""
        info = self.basic_auth_user_info
        return RegistryAccess(
            urls=self.schema_registry_url,
            authorization="" if info is None else basic_authorization(info.value),
            connect_seconds=self.http_connect_timeout_ms / _MILLISECONDS,
            read_seconds=self.http_read_timeout_ms / _MILLISECONDS,
            retries=self.max_retries,
            first_wait_seconds=self.retries_wait_ms / _MILLISECONDS,
            longest_wait_seconds=self.retries_max_wait_ms / _MILLISECONDS,
        )

    @property
    def choice(self) -> IdChoice:
        """How ids are found."""
        origin = Origin.REGISTERED if self.auto_register_schemas else Origin.FOUND
        if self.use_schema_id >= 0:
            origin = Origin.GIVEN
        elif self.use_latest_version:
            origin = Origin.LATEST
        return IdChoice(origin=origin, normalize=self.normalize_schemas, given=self.use_schema_id)

    @property
    def rules(self) -> AvroRules:
        """How schemas and values are written."""
        return AvroRules(
            meta_data=self.connect_meta_data,
            enums=self.enhanced_avro_schema_support,
            scrub=self.scrub_invalid_names,
            defaults=not self.ignore_default_for_nullables,
        )

    def _unsupported(self) -> Iterator[Problem]:
        known = {each.name for each in self.settings()} | _HARMLESS
        for key, value in self.originals.items():
            if key in known or (key in _UNSUPPORTED and value.strip() == _UNSUPPORTED[key]):
                continue
            usual = _UNSUPPORTED.get(key)
            instead = "remove it" if usual is None else f"remove it, or leave it at {usual!r}"
            yield key, f"{key} is not supported by this converter and is not ignored: {instead}."

    def _credential_problems(self) -> Iterator[Problem]:
        from_info = self.basic_auth_credentials_source == "USER_INFO"
        key = "basic.auth.user.info"
        if from_info and self.basic_auth_user_info is None:
            yield key, "It is needed, because basic.auth.credentials.source is USER_INFO."
        if not from_info and self.basic_auth_user_info is not None:
            yield (
                key,
                "It has no effect without basic.auth.credentials.source=USER_INFO: set that, too.",
            )


def _url_problems(url: str) -> Iterator[Problem]:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        fits = False
    if not fits:
        # Without the URL, which may contain a password.
        yield (
            "schema.registry.url",
            "Each must be a URL such as http://registry:8081 or https://registry.",
        )
