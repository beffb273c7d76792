"""Which settings of Kafka clients connectors may override: the worker's policy, as Kafka Connect has it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from headrace.connect.config import Problem, under

OVERRIDES: Final = ("producer.override.", "consumer.override.", "admin.override.")
"""Beginnings of a connector's keys that override the worker's settings of its clients."""

POLICIES: Final = ("All", "Allowlist", "None", "Principal")
"""The policies by their short names."""

_PACKAGE = "org.apache.kafka.connect.connector.policy"
_SUFFIX = "ConnectorClientConfigOverridePolicy"
_OF_PRINCIPALS: Final = frozenset({"sasl.jaas.config", "sasl.mechanism", "security.protocol"})


def policy_name(named: str) -> str | None:
    """The short name of the policy that *named* is the short name, or Java's class, of; else ``None``."""
    short = named.strip().removeprefix(f"{_PACKAGE}.").removesuffix(_SUFFIX)
    return short if short in POLICIES else None


def policy_problem(named: str) -> str | None:
    """What is wrong with a policy's name."""
    if policy_name(named):
        return None
    return f"Class {named} could not be found. There are: {', '.join(POLICIES)}."


def override_problems(
    props: Mapping[str, str], policy: str, allowlist: tuple[str, ...]
) -> Iterator[Problem]:
    """The overrides in a connector's *props* that the *policy* refuses, in Kafka Connect's words.

    *allowlist* are the settings that the policy Allowlist lets through.
    """
    name = policy_name(policy)
    if name == "All":
        return
    allowed = {"Principal": _OF_PRINCIPALS, "Allowlist": frozenset(allowlist)}.get(name or "", ())
    for prefix in OVERRIDES:
        for key in under(props, prefix):
            if key not in allowed:
                told = f"The '{name}' policy does not allow '{key}' to be overridden in the connector configuration."
                yield f"{prefix}{key}", told
