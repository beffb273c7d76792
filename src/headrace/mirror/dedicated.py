"""The file of MirrorMaker's dedicated mode: several clusters, and flows between them. Pure.

``clusters = A, B`` names the clusters, ``A.<key>`` has settings of one, ``A->B.<key>`` those of one flow; keys without a
prefix are for all. Of each flow come the configurations of a worker on the target and of three connectors. Placeholders of
configuration providers stay what they are.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations, product
from typing import Final

from headrace.connect.config import Problem, under
from headrace.connect.errors import ConfigError
from headrace.connect.setting import SettingType, parsed
from headrace.kafka.sentences import counted
from headrace.mirror.classes import JAVA_PACKAGE
from headrace.mirror.client_settings import SERVERS, is_connection_key
from headrace.mirror.filters import topic_filter
from headrace.mirror.policies import (
    CLASS_KEY,
    DEFAULT_SEPARATOR,
    SEPARATOR_KEY,
    IdentityReplicationPolicy,
    alias_problem,
    replication_policy,
    separator_problem,
)
from headrace.mirror.settings import (
    MirrorCheckpointConfig,
    MirrorHeartbeatConfig,
    MirrorSourceConfig,
    same_cluster,
)

CLUSTERS: Final = "clusters"
SOURCE_CONNECTOR: Final = "MirrorSourceConnector"
CHECKPOINT_CONNECTOR: Final = "MirrorCheckpointConnector"
HEARTBEAT_CONNECTOR: Final = "MirrorHeartbeatConnector"
CONNECTORS: Final = (SOURCE_CONNECTOR, CHECKPOINT_CONNECTOR, HEARTBEAT_CONNECTOR)
"""The names of the connectors of each flow, which are those of their classes."""

ENABLE_ONE: Final = "Enable one, as in A->B.enabled = true."

GROUP_KEY: Final = "mirror.group.id"
_PROVIDERS: Final = "config.providers"
_HEARTBEATS: Final = "emit.heartbeats.enabled"
_CHECKPOINTS_NEED: Final = ("emit.checkpoints.enabled", "emit.offset-syncs.enabled")
_POLICY: Final = "replication.policy"
BYTES_CONVERTER: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"
_CLIENTS: Final = ("consumer", "producer", "admin")
_ARROW: Final = "->"
_FEWEST: Final = 2
_NAMED: Final = 20
_SIMILAR: Final = 0.8

_CONNECT_KEYS: Final = frozenset(
    {
        "config.action.reload",
        "connector.class",
        "connector.plugin.version",
        "errors.log.enable",
        "errors.log.include.messages",
        "errors.retry.delay.max.ms",
        "errors.retry.timeout",
        "errors.tolerance",
        "header.converter",
        "header.converter.plugin.version",
        "key.converter",
        "key.converter.plugin.version",
        "metric.reporters",
        "name",
        "predicates",
        "tasks.max",
        "tasks.max.enforce",
        "transforms",
        "value.converter",
        "value.converter.plugin.version",
    }
)
_MIRROR_KEYS: Final = frozenset(
    each.name
    for config in (MirrorSourceConfig, MirrorCheckpointConfig, MirrorHeartbeatConfig)
    for each in config.settings()
)
_OWN_KEYS: Final = frozenset(
    key
    for key in _MIRROR_KEYS
    if key.startswith(("mirror.", "partition.discovery.", "transaction."))
)
_WORKER_PREFIXES: Final = (
    "offset.storage",
    "config.storage",
    "status.storage",
    "key.converter",
    "value.converter",
    "header.converter",
    "task",
    "worker",
    _POLICY,
)
# Of a worker that keeps no configurations and statuses in Kafka, and of connectors.
_NOT_OF_STANDALONE: Final = ("config.storage", "status.storage", "task", "worker", _POLICY)
REST_PREFIXES: Final = (
    "access.control.allow.",
    "admin.listeners",
    "listeners",
    "response.http.headers.",
    "rest.",
)
"""Of the keys by which a flow's worker answers requests."""
_PROCESS_PREFIXES: Final = (*REST_PREFIXES, _PROVIDERS, "headrace.", "plugin.", "spark.")
_PROCESS_KEYS: Final = frozenset({CLUSTERS, "dedicated.mode.enable.internal.rest"})
_FLOW_PREFIXES: Final = (
    *REST_PREFIXES,
    "admin.",
    "connector.client.config.",
    "consumer.",
    "errors.",
    "exactly.once.support",
    "header.converter.",
    "headrace.",
    "key.converter.",
    "offsets.storage.topic",
    "poll.",
    "predicates.",
    "producer.",
    "source.",
    "target.",
    "topic.creation.",
    "transaction.boundary",
    "transforms.",
    "value.converter.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One direction between two clusters.

    *worker* is the configuration of MirrorMaker's worker, *connectors* those of its three connectors by their names. A flow
    that is not enabled has heartbeats only. They may hold secrets and placeholders.
    """

    source: str
    target: str
    is_enabled: bool
    has_heartbeats: bool
    worker: Mapping[str, str] = field(repr=False)
    connectors: Mapping[str, Mapping[str, str]] = field(repr=False)

    @property
    def name(self) -> str:
        """As its keys begin: ``A->B``."""
        return f"{self.source}{_ARROW}{self.target}"

    @property
    def active_connectors(self) -> Mapping[str, Mapping[str, str]]:
        """The configurations of those connectors that have something to do."""
        wanted = (
            *((SOURCE_CONNECTOR,) if self.is_enabled else ()),
            *((CHECKPOINT_CONNECTOR,) if self.is_enabled and self._has_checkpoints else ()),
            *((HEARTBEAT_CONNECTOR,) if self.has_heartbeats else ()),
        )
        return {name: self.connectors[name] for name in wanted}

    @property
    def _has_checkpoints(self) -> bool:
        """MirrorMaker's connector of checkpoints refuses to run without either, and the flow goes on without it."""
        given = self.connectors[CHECKPOINT_CONNECTOR]
        return all(_is_true(given.get(key, "true")) for key in _CHECKPOINTS_NEED)

    @property
    def standalone_worker(self) -> Mapping[str, str]:
        """*worker* without what only a distributed worker has, and what is for connectors."""
        return {
            key: value
            for key, value in self.worker.items()
            if not key.startswith(_NOT_OF_STANDALONE)
        }

    def key_in_file(self, key: str, given: Container[str]) -> str:
        """How the file has *key* of this flow's worker or connectors: the one of its forms that is *given*, or the nearest."""
        sides = {"source": self.source, "target": self.target}
        side, _, rest = key.partition(".")
        alias, rest = (sides[side], rest) if side in sides and rest else (self.target, key)
        rest = rest.removeprefix("cluster.")
        part, _, ending = rest.partition(".")
        common = ending if part in _CLIENTS and is_connection_key(ending) else rest
        forms = [f"{self.name}.{key}", f"{alias}.{rest}", f"{alias}.{common}", common, key]
        is_clusters = side in sides or is_connection_key(key)
        return next((each for each in forms if each in given), forms[1 if is_clusters else 0])


@dataclass(frozen=True, slots=True, kw_only=True)
class DedicatedConfig:
    """What such a file says. *process* are the settings of the whole process, *warnings* sentences about keys."""

    flows: tuple[Flow, ...]
    process: Mapping[str, str] = field(repr=False)
    warnings: tuple[str, ...] = ()

    def towards(self, targets: Collection[str]) -> tuple[Flow, ...]:
        """The flows to one of *targets*; all without any. An alias that no flow has raises ``ConfigError``."""
        unknown = [each for each in targets if each not in {flow.target for flow in self.flows}]
        if unknown:
            told = f"No flow of the file has the target {', '.join(unknown)}."
            raise ConfigError([(CLUSTERS, told)])
        return tuple(each for each in self.flows if not targets or each.target in targets)


def dedicated_config(
    props: Mapping[str, str],
    *,
    repeated: Iterable[str] = (),
    where: str = "",
    further: Callable[[DedicatedConfig], Iterable[Problem]] = lambda _: (),
) -> DedicatedConfig:
    """The flows that *props*, the file's content, describe; *repeated* are keys that it has more than once.

    Raises :class:`~headrace.connect.errors.ConfigError` with every problem; *where* is the file's path. *further* finds
    those of the values of a file that is wrong already; what has been told of a key, or in the same words, is not told again.
    """
    aliases = _aliases(props)
    repeated = tuple(dict.fromkeys(repeated))
    problems = [*_alias_problems(aliases)]
    has_aliases = not problems
    problems += _repeated(repeated, aliases)
    warnings, misspelt = _unknown(props, aliases)
    refused = {key for key, _ in problems}
    warnings = [*warnings, *(_told_last(key) for key in repeated if key not in refused)]
    problems += [*misspelt, *_boolean_problems(props, aliases)]
    flows = tuple(_flows(props, aliases)) if has_aliases else ()
    if has_aliases:
        unset = tuple(_misspelt_enabled(props, aliases, flows))
        problems += unset or dict.fromkeys(_flow_problems(flows, props))
    process = {key: value for key, value in props.items() if key.startswith(_PROCESS_PREFIXES)}
    config = DedicatedConfig(flows=flows, process=process, warnings=tuple(warnings))
    if problems:
        known, told = dict(problems), {sentence for _, sentence in problems}
        more = (each for each in further(config) if each[0] not in known and each[1] not in told)
        raise ConfigError([*problems, *more], where=where, warnings=warnings)
    return config


def _aliases(props: Mapping[str, str]) -> Sequence[str]:
    found = parsed(props.get(CLUSTERS, ""), SettingType.LIST)
    assert isinstance(found, tuple)
    return [str(each) for each in found]


def _alias_problems(aliases: Sequence[str]) -> Iterator[Problem]:
    if not aliases:
        yield CLUSTERS, "No clusters are named. Give at least two aliases, as in clusters = A, B."
    for each in dict.fromkeys(aliases):
        if aliases.count(each) > 1:
            yield CLUSTERS, f"{each} is named twice, and so would be its flows. Name it once."
        if not each or _ARROW in each:
            yield CLUSTERS, f"{each!r} is no alias: it is empty, or has {_ARROW} in it."
    for one, other in permutations(dict.fromkeys(aliases), 2):
        if other.startswith(f"{one}."):
            told = f"Keys of {other} could be keys of {one}. Give one of them another alias."
            yield CLUSTERS, told


def _repeated(keys: Iterable[str], aliases: Sequence[str]) -> Iterator[Problem]:
    for key in keys:
        if key == CLUSTERS or _of_flow(key, aliases) is not None:
            yield key, "The file has it more than once. Leave one of the lines out."


def _told_last(key: str) -> str:
    return f"The file has '{key}' more than once: the last value counts."


def _pairs(aliases: Sequence[str]) -> Iterator[tuple[str, str]]:
    return permutations(aliases, 2)


def _of_flow(key: str, aliases: Sequence[str]) -> str | None:
    """What *key* says about one of the flows: its name without the flow's."""
    for source, target in _pairs(aliases):
        prefix = f"{source}{_ARROW}{target}."
        if key.startswith(prefix):
            return key.removeprefix(prefix)
    return None


def _boolean_problems(props: Mapping[str, str], aliases: Sequence[str]) -> Iterator[Problem]:
    keys = [_HEARTBEATS]
    for source, target in _pairs(aliases):
        keys += [f"{source}{_ARROW}{target}.{key}" for key in ("enabled", _HEARTBEATS)]
    for key in keys:
        text = props.get(key, "true").strip()
        if text.lower() not in ("true", "false"):
            yield key, f"{text} is neither true nor false."


def _flows(props: Mapping[str, str], aliases: Sequence[str]) -> Iterator[Flow]:
    for source, target in _pairs(aliases):
        own = _own(props, source, target)
        is_enabled = _is_true(own.get("enabled", "false"))
        has_heartbeats = _is_true(own.get(_HEARTBEATS, props.get(_HEARTBEATS, "true")))
        if is_enabled or has_heartbeats:
            yield Flow(
                source=source,
                target=target,
                is_enabled=is_enabled,
                has_heartbeats=has_heartbeats,
                worker=_worker(props, source, target),
                connectors={name: _connector(props, source, target, name) for name in CONNECTORS},
            )


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"


def _cluster(props: Mapping[str, str], alias: str) -> dict[str, str]:
    """The settings of one cluster. Servers and logins are those of its clients, too, and of the file without a prefix."""
    own = under(props, f"{alias}.")
    found = dict(own)
    for given, prefixes in ((own, _CLIENTS), (props, (*_CLIENTS, ""))):
        for key, value in given.items():
            if is_connection_key(key):
                for prefix in prefixes:
                    found.setdefault(f"{prefix}.{key}" if prefix else key, value)
    return found


def _worker(props: Mapping[str, str], source: str, target: str) -> dict[str, str]:
    common = {key: value for key, value in props.items() if key.startswith(_WORKER_PREFIXES)}
    providers = {key: value for key, value in props.items() if key.startswith(_PROVIDERS)}
    defaults = {
        "client.id": f"{source}{_ARROW}{target}",
        "group.id": f"{source}-mm2",
        "offset.storage.topic": f"mm2-offsets.{source}.internal",
        "status.storage.topic": f"mm2-status.{source}.internal",
        "config.storage.topic": f"mm2-configs.{source}.internal",
        **{f"{role}.converter": BYTES_CONVERTER for role in ("key", "value", "header")},
    }
    listening = {
        key: value
        for key, value in _own(props, source, target).items()
        if key.startswith(REST_PREFIXES)
    }
    return {**defaults, **_cluster(props, target), **common, **providers, **listening}


def _own(props: Mapping[str, str], source: str, target: str) -> dict[str, str]:
    """What the file says of one flow."""
    return under(props, f"{source}{_ARROW}{target}.")


def _connector(props: Mapping[str, str], source: str, target: str, name: str) -> dict[str, str]:
    found = {key: value for key, value in props.items() if _is_connectors(key)}
    for side, alias in (("source", source), ("target", target)):
        for key, value in _cluster(props, alias).items():
            prefix = side if key.startswith(_CLIENTS) else f"{side}.cluster"
            found[f"{prefix}.{key}"] = value
    defaults = {
        "name": name,
        "connector.class": f"{JAVA_PACKAGE}{name}",
        "source.cluster.alias": source,
        "target.cluster.alias": target,
        "enabled": "false",
    }
    if name == SOURCE_CONNECTOR:
        # Flows of several sources to one target have connectors of the same name.
        defaults[GROUP_KEY] = f"connect-{source}.{target}"
    own = _own(props, source, target).items()
    return {
        **defaults,
        **found,
        **{key: value for key, value in own if not key.startswith(REST_PREFIXES)},
    }


def _is_connectors(key: str) -> bool:
    """Whether *key* without a prefix is given to every connector."""
    if key == SERVERS:
        return False
    is_declared = key in _MIRROR_KEYS or key in _CONNECT_KEYS or is_connection_key(key)
    return is_declared or key.startswith((_PROVIDERS, _POLICY))


def _flow_problems(flows: Sequence[Flow], props: Mapping[str, str]) -> Iterator[Problem]:
    if not flows:
        yield CLUSTERS, f"No source->target replication flows. {ENABLE_ONE}"
    for alias in dict.fromkeys(each for flow in flows for each in (flow.source, flow.target)):
        if not any(_servers(flow, alias) for flow in flows):
            told = f"The cluster {alias} has no address: give {alias}.{SERVERS}."
            yield f"{alias}.{SERVERS}", told
    enabled = [flow for flow in flows if flow.is_enabled]
    for flow in enabled:
        yield from _policy_problems(flow, props)
    for one, other in combinations(enabled, 2):
        if (one.source, one.target) == (other.target, other.source) and _is_circle(one, other):
            yield (
                f"{one.name}.{CLASS_KEY}",
                (
                    f"{one.name} and {other.name} copy the same topics to the same names, so that each record would come "
                    "back and go on without end. Use DefaultReplicationPolicy, or topics that are different on both ways."
                ),
            )


def _servers(flow: Flow, alias: str) -> str:
    side = "source" if alias == flow.source else "target"
    key = f"{side}.cluster.{SERVERS}"
    is_its_own = alias in (flow.source, flow.target)
    return flow.connectors[SOURCE_CONNECTOR].get(key, "").strip() if is_its_own else ""


def _policy_problems(flow: Flow, props: Mapping[str, str]) -> Iterator[Problem]:
    config = flow.connectors[SOURCE_CONNECTOR]
    if _has_placeholder(config, _POLICY):
        return
    if (problem := separator_problem(config.get(SEPARATOR_KEY, DEFAULT_SEPARATOR))) is not None:
        yield flow.key_in_file(SEPARATOR_KEY, props), problem
        return
    try:
        policy = replication_policy(config)
    except ConfigError as error:
        yield from ((flow.key_in_file(key, props), told) for key, told in error.problems)
        return
    for alias in (flow.source, flow.target):
        if (problem := alias_problem(policy, alias)) is not None:
            yield CLUSTERS, problem
    servers = config.get(f"source.cluster.{SERVERS}"), config.get(f"target.cluster.{SERVERS}")
    if isinstance(policy, IdentityReplicationPolicy) and servers[0] == servers[1]:
        yield flow.key_in_file(CLASS_KEY, props), same_cluster(flow.name)


def _is_circle(one: Flow, other: Flow) -> bool:
    """Whether two opposite flows would copy a topic that there may be under the same name both ways."""
    configs = [each.connectors[SOURCE_CONNECTOR] for each in (one, other)]
    if any(_has_placeholder(each, _POLICY, "topic") for each in configs):
        return False
    try:
        policies = [replication_policy(each) for each in configs]
        filters = [topic_filter(each) for each in configs]
    except ConfigError:
        # Reported with the connector's configuration.
        return False
    if not all(isinstance(each, IdentityReplicationPolicy) for each in policies):
        return False
    # Patterns cannot be intersected: any topic, and all that are named.
    named = [each.strip() for config in configs for each in config.get("topics", "").split(",")]
    return any(all(each.copies(topic) for each in filters) for topic in ("any-topic", *named))


def _has_placeholder(config: Mapping[str, str], *prefixes: str) -> bool:
    return any("${" in value for key, value in config.items() if key.startswith(prefixes))


def _unknown(
    props: Mapping[str, str], aliases: Sequence[str]
) -> tuple[Sequence[str], Sequence[Problem]]:
    """Sentences about keys that have no effect, and problems of those that a key of ours was most likely meant by."""
    warnings = list[str]()
    problems = list[Problem]()
    others = 0
    for key in props:
        name = _name_of(key, aliases)
        if name is None:
            continue
        meant = _nearest(name, _MIRROR_KEYS | _CONNECT_KEYS)
        if name.startswith("mirror.") or meant in _OWN_KEYS:
            told = (
                f"There is no such setting. Did you mean {meant}?"
                if meant
                else "There is no such setting."
            )
            problems.append((key, told))
        elif len(warnings) < _NAMED:
            alike = [meant] if meant else _with_aliases(key, props, aliases)
            named = " or ".join(f"'{each}'" for each in alike)
            hint = f" Did you mean {named}?" if named else ""
            warnings.append(f"{_no_effect(key, aliases)}{hint}")
        else:
            others += 1
    if others:
        warnings.append(f"The same is true of {counted(others, 'other key')}.")
    return warnings, problems


def _misspelt_enabled(
    props: Mapping[str, str], aliases: Sequence[str], flows: Sequence[Flow]
) -> Iterator[Problem]:
    """Of a file that would copy nothing: the keys by which a flow was most likely to be enabled."""
    if len(aliases) < _FEWEST or any(flow.is_enabled for flow in flows):
        return
    for key, value in props.items():
        flow, dot, name = key.rpartition(".")
        if not _is_true(value) or _ARROW not in flow or not dot:
            continue
        if _of_flow(key, aliases) is None:
            meant = "enabled" if name == "enabled" else None
            named = f"a key of one of the flows between {', '.join(aliases)}"
        else:
            meant = None if name in _MIRROR_KEYS else _nearest(name, _MIRROR_KEYS)
            named = f"{flow}.enabled"
        if meant == "enabled":
            yield key, f"There is no such setting, and no flow is enabled. Did you mean {named}?"


def _no_effect(key: str, aliases: Sequence[str]) -> str:
    source, found, rest = key.partition(_ARROW)
    target = rest.partition(".")[0]
    unknown = [each for each in (source, target) if found and each not in aliases]
    if unknown:
        return f"The key '{key}' has no effect: {CLUSTERS} does not have {' and '.join(unknown)}."
    return f"The configuration '{key}' was supplied but isn't a known config."


def _with_aliases(key: str, given: Container[str], aliases: Sequence[str]) -> list[str]:
    """*key* with the aliases that its cluster's, or its flow's, are almost: those keys that are not *given* themselves."""
    owner, dot, name = key.partition(".")
    meant = [[each] if each in aliases else _alike(each, aliases) for each in owner.split(_ARROW)]
    owners = [_ARROW.join(named) for named in product(*meant) if len(set(named)) == len(named)]
    found = (f"{each}.{name}" for each in owners if dot)
    return [each for each in found if each not in given]


def _name_of(key: str, aliases: Sequence[str]) -> str | None:
    """The setting that the unknown *key* names, without its cluster or flow; ``None`` for a key that has an effect."""
    own = _of_flow(key, aliases)
    if own is not None:
        is_known = _is_connectors(own) or own.startswith(_FLOW_PREFIXES)
        return None if is_known else own
    for alias in aliases:
        if key.startswith(f"{alias}."):
            # Settings of clients and of the worker, which reports those that it does not know.
            name = key.removeprefix(f"{alias}.")
            return name if name.startswith("mirror.") else None
    if _is_connectors(key) or key in _PROCESS_KEYS or key == SERVERS:
        return None
    return None if key.startswith((*_WORKER_PREFIXES, *_PROCESS_PREFIXES)) else key


def _nearest(key: str, others: Iterable[str]) -> str | None:
    return next(iter(_alike(key, others)), None)


def _alike(key: str, others: Iterable[str]) -> list[str]:
    return difflib.get_close_matches(key, list(others), cutoff=_SIMILAR)
