"""What a connector is asked to promise, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, cast

import pytest

from headrace.config.providers import resolution
from headrace.connect.connector import ExactlyOnceSupport
from headrace.connectors.file_stream import FileStreamSourceConnector
from headrace.plugins import Plugins, checked_worker
from headrace.plugins.validation import validation
from plugins.judged import (
    CONNECTOR,
    WORKER,
    errors,
    validated,
)

T = TypeVar("T")


def test_exactly_once_is_refused_by_who_cannot():
    """The worker in one sentence, the connector in another."""
    wanted = {"exactly.once.support": "required"}
    off = validated(wanted, exactly_once_source_support="disabled")

    assert ["This worker does not have exactly-once source support enabled."] == errors(off)[
        "exactly.once.support"
    ]
    assert [
        "The connector does not support exactly-once semantics with the provided configuration."
    ] == errors(validated(wanted, "file"))["exactly.once.support"]
    assert [
        (
            "The connector does not support connector-defined transaction boundaries with the given "
            "configuration. Please reconfigure it to use a different transaction boundary definition."
        )
    ] == errors(validated({"transaction.boundary": "connector"}))["transaction.boundary"]


Said = ExactlyOnceSupport | Exception | None


class Hesitant(FileStreamSourceConnector):
    """Says of itself what a test wants: an answer, nothing, or an exception."""

    def __init__(self, support: Said = None, *, boundaries: bool | Exception | None = None) -> None:
        self._support, self._boundaries = support, boundaries

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport | None:
        """As given."""
        return _answer(self._support)

    def can_define_transaction_boundaries(self, props: Mapping[str, str]) -> bool:
        """As given; who forgets to answer returns None."""
        return cast("bool", _answer(self._boundaries))


def _answer(said: T | Exception) -> T:
    if isinstance(said, Exception):
        raise said
    return said


def told_of(connector: Hesitant, key: str, **settings: str) -> list[str]:
    """What is said of *key*; in the names of *settings* an underscore stands for a dot."""
    worker = checked_worker(WORKER)
    props = {**CONNECTOR, **{name.replace("_", "."): value for name, value in settings.items()}}
    return errors(validation(resolution(props, {}), connector, worker, Plugins(worker))).get(
        key, []
    )


SEE_LOGS = (
    "An unexpected error occurred during validation; please see the worker logs for more details."
)


@pytest.mark.parametrize(
    ("said", "reported"),
    [
        (ExactlyOnceSupport.SUPPORTED, None),
        (ExactlyOnceSupport.UNSUPPORTED, "The connector does not support exactly-once semantics"),
        (None, "The connector does not implement the API required for preflight validation"),
        (OSError("no disk"), "An unexpected error occurred during validation: no disk"),
        (OSError(), SEE_LOGS),
    ],
)
@pytest.mark.parametrize("wanted", ["required", "REQUIRED"])
def test_a_connector_that_must_be_exactly_once_is_asked(
    said: Said, reported: str | None, wanted: str
) -> None:
    """No answer is no promise; whoever raises is told of, with the log where the exception says nothing."""
    found = told_of(Hesitant(said), "exactly.once.support", exactly_once_support=wanted)

    assert ([reported] if reported else []) == [each[: len(reported or "")] for each in found]


def test_a_connector_that_says_nothing_may_be_asked_for_less() -> None:
    """The sentence says which value disables the check, and with it nothing is asked."""
    connector = Hesitant(None)

    [reported] = told_of(connector, "exactly.once.support", exactly_once_support="required")
    assert 'to use the value "requested" for this property' in reported
    assert [] == told_of(connector, "exactly.once.support", exactly_once_support="requested")


@pytest.mark.parametrize(
    ("said", "reported"),
    [
        (True, None),
        (False, "The connector does not support connector-defined transaction boundaries"),
        (None, "This connector has returned a null value from its canDefineTransactionBoundaries"),
        (OSError("no disk"), "An unexpected error occurred during validation: no disk"),
        (OSError(), SEE_LOGS),
    ],
)
@pytest.mark.parametrize("wanted", ["connector", "Connector"])
def test_a_connector_that_is_to_place_the_ends_of_transactions_is_asked(
    *, said: bool | Exception | None, reported: str | None, wanted: str
) -> None:
    """As above; no answer counts as "cannot"."""
    found = told_of(Hesitant(boundaries=said), "transaction.boundary", transaction_boundary=wanted)

    assert ([reported] if reported else []) == [each[: len(reported or "")] for each in found]


@pytest.mark.parametrize("boundary", ["poll", "interval"])
def test_other_boundaries_need_no_promise(boundary: str) -> None:
    """The connector is not asked."""
    connector = Hesitant(boundaries=OSError("asked"))

    assert [] == told_of(connector, "transaction.boundary", transaction_boundary=boundary)


def test_a_hook_that_raises_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """With its trace, for the sentence that sends people there."""
    told_of(Hesitant(OSError()), "exactly.once.support", exactly_once_support="required")

    [record] = [each for each in caplog.records if each.exc_info]
    assert "hook failed during validation" in record.message
