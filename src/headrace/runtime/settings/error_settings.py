"""The settings that say what happens to records that cannot be read, converted or sent (KIP-298)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from headrace.connect.config import Config, Problem, setting
from headrace.connect.setting_type import SettingType
from headrace.slot.work import ErrorPolicy

_ALL: Final = "all"
_WITHOUT_END = -1
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def topic_name_problem(name: str) -> str | None:
    """Why no topic of Kafka may have that name; empty is nobody's."""
    if not name or (_TOPIC.fullmatch(name) and name not in (".", "..")):
        return None
    return "It is not a name that a topic of Kafka may have"


def _retry_timeout(milliseconds: int) -> str | None:
    return None if milliseconds >= _WITHOUT_END else "Value must be at least -1"


def _replication(number: int) -> str | None:
    if number == -1 or number >= 1:
        return None
    return "Value must be at least 1, or -1 for the brokers' default"


class ErrorSettings(Config):
    """Whether bad records fail the task, and where they go otherwise; part of every connector's configuration."""

    errors_retry_timeout: int = setting(
        default=0,
        kind=SettingType.LONG,
        valid=_retry_timeout,
        doc="How long in milliseconds a transformation or conversion is tried again whose failure may pass; "
        "-1 without end, 0 not at all: the work is then planned again.",
        group="Error Handling",
        order=1,
        width="MEDIUM",
        display_name="Retry Timeout for Errors",
    )
    errors_retry_delay_max_ms: int = setting(
        default=60_000,
        kind=SettingType.LONG,
        at_least=1,
        doc="The longest wait between two of these tries, in milliseconds.",
        group="Error Handling",
        order=2,
        width="MEDIUM",
        display_name="Maximum Delay Between Retries for Errors",
    )
    errors_tolerance: str = setting(
        default="none",
        one_of=("none", _ALL),
        doc="What happens to a record that cannot be read, converted or sent: none fails the task, all passes "
        "over it and goes on.",
        group="Error Handling",
        order=3,
        width="SHORT",
        display_name="Error Tolerance",
    )
    errors_log_enable: bool = setting(
        default=False,
        doc="Whether each bad record is told in the log with its stage, passed over or not.",
        group="Error Handling",
        order=4,
        width="SHORT",
        display_name="Log Errors",
    )
    errors_log_include_messages: bool = setting(
        default=False,
        doc="Whether the log shows what such a record holds, too.",
        group="Error Handling",
        order=5,
        width="SHORT",
        display_name="Log Error Details",
    )
    errors_deadletterqueue_topic_name: str = setting(
        default="",
        valid=topic_name_problem,
        doc="The topic that records that are passed over are sent to; empty: they are skipped.",
        group="Error Handling",
        order=6,
        width="MEDIUM",
        display_name="Dead Letter Queue Topic Name",
    )
    errors_deadletterqueue_topic_replication_factor: int = setting(
        default=3,
        kind=SettingType.SHORT,
        valid=_replication,
        doc="How many copies that topic has when it has to be made.",
        group="Error Handling",
        order=7,
        width="MEDIUM",
        display_name="Dead Letter Queue Topic Replication Factor",
    )
    errors_deadletterqueue_context_headers_enable: bool = setting(
        default=False,
        doc="Whether dead letters have headers, beginning with __connect.errors., that tell what was wrong "
        "and where.",
        group="Error Handling",
        order=8,
        width="MEDIUM",
        display_name="Enable Error Context Headers",
    )

    def check(self) -> Iterator[Problem]:
        """Dead letters have a topic of their own, as Kafka Connect has it for sinks."""
        name = self.errors_deadletterqueue_topic_name
        if name and name == self.originals.get("topic", "").strip():
            yield (
                "errors.deadletterqueue.topic.name",
                f"Records are sent to {name} themselves (topic). Name another topic for dead letters.",
            )

    @property
    def errors(self) -> ErrorPolicy:
        """What the tasks do with bad records."""
        return ErrorPolicy(
            tolerate=self.errors_tolerance == _ALL,
            dead_letters=self.errors_deadletterqueue_topic_name or None,
            replication=self.errors_deadletterqueue_topic_replication_factor,
            headers=self.errors_deadletterqueue_context_headers_enable,
            log=self.errors_log_enable,
            log_content=self.errors_log_include_messages,
            retry_seconds=None
            if self.errors_retry_timeout < 0
            else self.errors_retry_timeout / 1e3,
            retry_delay_seconds=self.errors_retry_delay_max_ms / 1e3,
        )


def error_warnings(settings: ErrorSettings) -> Iterator[str]:
    """Sentences about settings that have no effect, or one that is easily overlooked. Pure."""
    policy = settings.errors
    if policy.dead_letters is not None and not policy.tolerate:
        yield (
            "errors.deadletterqueue.topic.name has no effect, because errors.tolerance is none: a record that "
            "cannot be read fails the task."
        )
    if policy.tolerate and policy.dead_letters is None:
        yield (
            "errors.tolerance is all, and errors.deadletterqueue.topic.name is not set: records that cannot be "
            "read, converted or sent are skipped. Only their number is told."
        )
    if policy.log_content and not policy.log:
        yield (
            "errors.log.include.messages has no effect, because errors.log.enable is false: bad records are not "
            "told one by one."
        )
