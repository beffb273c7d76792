"""What a connector is asked to promise, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from admission.judged import (
    CONNECTOR,
    WORKER,
    errors,
    validated,
)
from headrace.admission import Plugins, checked_worker
from headrace.admission.validation import validation
from headrace.connect.connector import ExactlyOnceSupport
from headrace.connectors.file_stream import FileStreamSourceConnector
from headrace.runtime.providers.resolution import resolution


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


class Hesitant(FileStreamSourceConnector):
    """Says nothing, or raises, when it is asked what it can."""

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        """Fails."""
        raise OSError(props["file"])

    def can_define_transaction_boundaries(self, props: Mapping[str, str]) -> bool:
        """Forgets to answer."""
        return cast("bool", None)


def test_a_hook_that_raises_or_says_nothing_is_a_problem():
    """Of the key that asked it."""
    worker = checked_worker(WORKER)
    infos = validation(
        resolution(
            {**CONNECTOR, "exactly.once.support": "required", "transaction.boundary": "connector"},
            {},
        ),
        Hesitant(),
        worker,
        Plugins(worker),
    )

    found = errors(infos)
    assert ["An unexpected error occurred during validation: /nowhere"] == found[
        "exactly.once.support"
    ]
    [told] = found["transaction.boundary"]
    assert told.startswith("This connector has returned a null value from its canDefine")
