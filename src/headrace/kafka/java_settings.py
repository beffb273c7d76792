"""The Java clients' settings, including the JAAS login: their names in librdkafka, and which are refused."""

# The library re-exports its own names in a way that the type checker takes for private.
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaException, Producer

from headrace.kafka.errors import kafka_error
from headrace.kafka.key_stores import settle_stores

_USER: Final = {"username": "sasl.username", "password": "sasl.password"}
_MODULES: Final[Mapping[str, Mapping[str, str]]] = {
    "PlainLoginModule": _USER,
    "ScramLoginModule": _USER,
    "OAuthBearerLoginModule": {
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
        "scope": "sasl.oauthbearer.scope",
    },
}
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""[\x00-\x20]+ | /\*.*?\*/ | /[^\n]*
    | "(?P<double>(?:\\.|[^"\\\n])*)"? | '(?P<single>(?:\\.|[^'\\\n])*)'?
    | (?P<mark>[;=]) | (?P<word>[^\x00-\x20;="'/]+)""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}

Token = tuple[str, bool]
"""A word or a quoted text, and whether it is one of the marks ``;`` and ``=``."""


def jaas_settings(line: str) -> dict[str, str]:
    """The client's settings for the JAAS configuration *line*; raises ``ValueError`` with a sentence."""
    module, options = _login(list(_tokens(line)))
    name = module.rpartition(".")[2]
    names = _MODULES.get(name)
    if names is None:
        raise ValueError(
            f"The login module {module} is not supported; use Java's PlainLoginModule, ScramLoginModule or "
            "OAuthBearerLoginModule."
        )
    if options.get("tokenauth", "").lower() == "true":
        raise ValueError("Delegation tokens (tokenauth) are not supported; name a user.")
    if names is not _USER:
        oauth = {"sasl.oauthbearer.method": "oidc"}
        return oauth | {names[key]: value for key, value in options.items() if key in names}
    missing = [key for key in names if not options.get(key)]
    if missing:
        raise ValueError(f"{' and '.join(missing)} must be given in JAAS config.")
    return {names[key]: options[key] for key in names}


def _login(tokens: list[Token]) -> tuple[str, dict[str, str]]:
    """The login module and its options. The messages are those of Kafka's Java clients."""
    if not tokens or tokens[0][1]:
        raise ValueError("Login module not specified in JAAS config.")
    module, flag, rest = tokens[0][0], tokens[1:2], tokens[2:]
    if not flag:
        raise ValueError("Login module control flag not specified in JAAS config.")
    if flag[0][1] or flag[0][0].lower() not in _FLAGS:
        raise ValueError(
            f"Invalid login module control flag in JAAS config; it is one of {', '.join(_FLAGS)}."
        )
    if (";", True) not in rest:
        raise ValueError("JAAS config entry not terminated by semi-colon.")
    end = rest.index((";", True))
    if rest[end + 1 :]:
        raise ValueError("JAAS config property contains more than one login module, should be 1.")
    return module, _options(rest[:end])


def _options(tokens: list[Token]) -> dict[str, str]:
    options = dict[str, str]()
    while tokens:
        (key, is_mark), equals, value = tokens[0], tokens[1:2], tokens[2:3]
        if is_mark or equals != [("=", True)] or not value or value[0][1]:
            known = {name for names in _MODULES.values() for name in names}
            which = f"key '{key}'" if key in known else "one of the keys"
            raise ValueError(
                f"Value not specified for {which} in JAAS config. Put each value in double quotes."
            )
        options[key] = value[0][0]
        tokens = tokens[3:]
    return options


def _tokens(line: str) -> Iterator[Token]:
    for found in _TOKEN.finditer(line):
        double, single, mark, word = found.group("double", "single", "mark", "word")
        quoted = single if double is None else double
        if quoted is not None:
            yield _ESCAPE.sub(_unescaped, quoted), False
        elif mark or word:
            yield mark or word, bool(mark)


def _unescaped(found: re.Match[str]) -> str:
    text = found[1]
    return chr(int(text, 8)) if text[0] in "01234567" else _ESCAPED.get(text, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """Settings of librdkafka, sentences about settings without effect, and problems by the user's keys."""

    settings: Mapping[str, str | int | bool]
    warnings: tuple[str, ...]
    problems: tuple[tuple[str, str], ...]


def translation(properties: Mapping[str, str], *, named: Callable[[str], str] = str) -> Translation:
    """*properties* with Java's names, or librdkafka's own, as settings of librdkafka.

    A name that the client does not know has no effect, as with the Java clients, which pass such settings on to
    plugins of their own. Keys of TLS are left out for a connection without it: they may belong to a worker's
    listeners. Warnings name a key as *named* gives it, such as with the user's prefix.
    """
    has_tls = properties.get("security.protocol", "").strip().upper() in _WITH_TLS
    settings: dict[str, str | int | bool] = {}
    ignored: list[str] = []
    problems: list[tuple[str, str]] = []
    for key, value in properties.items():
        if _is_default(key, value) or (key.startswith("ssl.") and not has_tls):
            continue
        if key in _REFUSED:
            problems.append((key, _REFUSED[key]))
        elif key in _READ:
            _READ[key](value, settings, problems)
        elif key in _SCALED:
            _add_scaled(key, value, settings, problems)
        elif not _has_counterpart(key):
            ignored.append(key)
        else:
            settings[_RENAMED.get(key, key)] = _VALUES.get((key, value), value)
    if has_tls:
        settle_stores(properties, settings, problems)
    if "sasl.oauthbearer.token.endpoint.url" in settings:
        settings.setdefault("sasl.oauthbearer.method", "oidc")
    return Translation(
        settings=settings,
        warnings=tuple(_warnings(ignored, named)),
        problems=tuple(sorted(problems)),
    )


def _warnings(ignored: Sequence[str], named: Callable[[str], str]) -> Iterator[str]:
    for key in ignored[:_MOST_NAMED]:
        yield f"{named(key)} has no effect: the Kafka client library (librdkafka) has no such setting."
    if len(ignored) > _MOST_NAMED:
        others = len(ignored) - _MOST_NAMED
        yield f"{others} other settings have no effect: the Kafka client library (librdkafka) has none of them."


def _has_counterpart(key: str) -> bool:
    if len(key) > _LONGEST or key in _NO_COUNTERPART or key.startswith(_NO_COUNTERPART_PREFIXES):
        return False
    return key in _OF_STORES or _takes_text(_RENAMED.get(key, key))


# Requests may name any key; those that recur are the client's own, about two hundred.
@functools.lru_cache(maxsize=512)
def _takes_text(client_key: str) -> bool:
    """Whether the client has a setting *client_key* whose value is a text; callbacks are set otherwise."""
    try:
        # The client sets one key after the other and stops at the first one that it refuses: nothing is ever started.
        Producer({client_key: "", _NO_SETTING: ""})
    except KafkaException as error:
        reason = kafka_error(error).str()
        return _NO_SETTING in reason or not any(each in reason for each in _NOT_FOR_TEXT)
    except (AttributeError, TypeError, ValueError):
        # Python's own names for callbacks.
        return False
    raise AssertionError(f"The client has a setting {_NO_SETTING}")


def _is_default(key: str, value: str) -> bool:
    """Whether *value* names a Java class whose function the client has built in."""
    return value.strip() in _DEFAULT_CLASSES.get(key, ())


def connect_name(key: str) -> str:
    """Kafka Connect's name of the client's setting *key*."""
    return _CALLED.get(key, key)


def means(key: str, client_key: str) -> bool:
    """Whether *key*, Java's name of a setting or librdkafka's, stands for the client's setting *client_key*."""
    scaled, _ = _SCALED.get(key, (key, 1))
    names = (key, scaled, _RENAMED.get(key), *_EXPANDED.get(key, ()))
    return client_key in names or connect_name(client_key) == key


# Twice as long as the longest name of a setting, Java's or the client's.
_LONGEST = 100
# A log with more is not readable, and a request may have a hundred thousand.
_MOST_NAMED = 20
_NO_SETTING = "headrace.no.setting"
_NOT_FOR_TEXT = (
    "No such configuration property",
    "must be set through",
    "not settable",
    "requires a callable",
)
_PROTOCOL = re.compile(r"^\s*[a-zA-Z][a-zA-Z\d+.-]*://")
_WITH_TLS = ("SSL", "SASL_SSL")

_CALLED = {
    "compression.codec": "compression.type",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "message.max.bytes": "max.request.size",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "metadata.broker.list": "bootstrap.servers",
    "queue.buffering.max.kbytes": "buffer.memory",
    "queue.buffering.max.ms": "linger.ms",
    "request.required.acks": "acks",
    "sasl.mechanisms": "sasl.mechanism",
}

_RENAMED = {
    # Other names of the client's own: whoever reads its settings finds each under one.
    "compression.codec": "compression.type",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "message.send.max.retries": "retries",
    "metadata.broker.list": "bootstrap.servers",
    "queue.buffering.max.ms": "linger.ms",
    "request.required.acks": "acks",
    "max.request.size": "message.max.bytes",
    "delivery.timeout.ms": "message.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "compression.gzip.level": "compression.level",
    "compression.lz4.level": "compression.level",
    "compression.zstd.level": "compression.level",
    "sasl.oauthbearer.assertion.template.file": "sasl.oauthbearer.assertion.jwt.template.file",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}

# Further settings that a key of Java may become, depending on its value.
_EXPANDED = {
    "sasl.jaas.config": ("sasl.username", "sasl.password", "sasl.oauthbearer.client.id"),
    "ssl.keystore.location": ("ssl.certificate.location", "ssl.key.location"),
    "ssl.truststore.location": ("ssl.ca.location", "ssl.ca.pem"),
}

_VALUES: dict[tuple[str, str], str] = {
    # In Java an empty value switches off the check of the host name.
    ("ssl.endpoint.identification.algorithm", ""): "none",
    ("ssl.endpoint.identification.algorithm", "HTTPS"): "https",
    # Java's "leave it to the operating system".
    ("send.buffer.bytes", "-1"): "0",
    ("receive.buffer.bytes", "-1"): "0",
    # Java's "no batching".
    ("batch.size", "0"): "1",
}

# Java needs these classes to get a token from an endpoint; the client does so by itself.
_DEFAULT_CLASSES = {
    "sasl.login.callback.handler.class": (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
        "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
    ),
    "sasl.oauthbearer.jwt.retriever.class": (
        "org.apache.kafka.common.security.oauthbearer.ClientCredentialsJwtRetriever",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
    ),
}

_SCALED = {"buffer.memory": ("queue.buffering.max.kbytes", 1024)}

_NO_COUNTERPART = frozenset(
    {
        "auto.include.jmx.reporter",
        "config.providers",
        "enable.metrics.push",
        "header.converter",
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "max.block.ms",
        "max.poll.records",
        "metadata.max.idle.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "partition.assignment.strategy",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.ignore.keys",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.jwt.validator.class",
        "sasl.oauthbearer.scope.claim.name",
        "security.providers",
        "socket.connection.setup.timeout.max.ms",
        "ssl.enabled.protocols",
        "ssl.engine.factory.class",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
        "transaction.two.phase.commit.enable",
        "value.deserializer",
        "value.serializer",
    }
)
_NO_COUNTERPART_PREFIXES = (
    "metric.reporters",
    "metrics.",
    "sasl.login.refresh.",
    "sasl.login.retry.",
    "sasl.oauthbearer.jwks.",
)

_OF_STORES = ("ssl.keystore.type", "ssl.truststore.password", "ssl.truststore.type")

_REFUSED = {
    "sasl.client.callback.handler.class": "Java classes are not supported; use sasl.* settings.",
    "sasl.login.callback.handler.class": "Java classes are not supported; use sasl.* settings.",
    "sasl.login.class": "Java classes are not supported; use sasl.* settings.",
}


def _add_jaas(
    line: str, settings: dict[str, str | int | bool], problems: list[tuple[str, str]]
) -> None:
    try:
        settings.update(jaas_settings(line))
    except ValueError as error:
        problems.append(("sasl.jaas.config", str(error)))


def _add_servers(
    addresses: str, settings: dict[str, str | int | bool], _problems: list[tuple[str, str]]
) -> None:
    # Java ignores a protocol before an address, which may be a listener's name.
    bare = (_PROTOCOL.sub("", each) for each in addresses.split(","))
    settings["bootstrap.servers"] = ",".join(bare)


def _add_partitioner(
    name: str, settings: dict[str, str | int | bool], problems: list[tuple[str, str]]
) -> None:
    if name.rpartition(".")[2] in ("", "DefaultPartitioner", "UniformStickyPartitioner"):
        settings["partitioner"] = "murmur2_random"
        return
    reason = (
        f"{name} is a Java class. Leave it out for Java's default, or set partitioner to one of "
        "random, consistent_random, murmur2_random, fnv1a_random."
    )
    problems.append(("partitioner.class", reason))


def _add_scaled(
    key: str,
    value: str,
    settings: dict[str, str | int | bool],
    problems: list[tuple[str, str]],
) -> None:
    name, unit = _SCALED[key]
    if value.strip().isdecimal() and int(value) > 0:
        settings[name] = max(1, int(value) // unit)
    else:
        problems.append((key, f"{value!r} is not a whole number above 0."))


# Keys that need more than a new name: each function adds settings or a problem for a value.
_READ = {
    "bootstrap.servers": _add_servers,
    "partitioner.class": _add_partitioner,
    "sasl.jaas.config": _add_jaas,
}
