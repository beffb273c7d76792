"""Whatever is sent, well-formed or not, every answer is one that the description of the API has."""

from __future__ import annotations

import copy
import importlib
import itertools
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rest.described import BROUGHT, DESCRIBED, NAMED, OPERATIONS, described_worker, parameters

if TYPE_CHECKING:
    from schemathesis import Case
    from schemathesis.checks import CheckFunction
    from schemathesis.schemas import APIOperation, BaseSchema

EXAMPLES = settings(
    max_examples=30,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
# Schemathesis puts its own in their place for good; with its printer no other test would show its examples.
HYPOTHESIS_OWN = [
    "hypothesis.core.RepresentationPrinter",
    "hypothesis.internal.conjecture.engine.BUFFER_SIZE",
    "hypothesis.strategies._internal.collections.BUFFER_SIZE",
]
MALFORMED = [
    (method, path)
    for method, path in OPERATIONS
    if "requestBody" in DESCRIBED["paths"][path][method]
    or parameters(method, path, "query")
    or "{task}" in path
]


@pytest.fixture(scope="module")
def schema() -> Iterator[BaseSchema]:
    """The description, which is valid; hypothesis is as it was when the last test here is over."""
    import schemathesis

    with pytest.MonkeyPatch.context() as kept:
        for each in HYPOTHESIS_OWN:
            module, _, name = each.rpartition(".")
            kept.setattr(each, getattr(importlib.import_module(module), name))
        schema = schemathesis.openapi.from_dict(
            copy.deepcopy(DESCRIBED), config=schemathesis.Config()
        )
        schema.validate()
        yield schema


def requests_of(operation: APIOperation, mode: str) -> st.SearchStrategy[Case]:
    """Made up; for something that is there; and, when well-formed, with a body that makes sense."""
    import schemathesis

    kind = schemathesis.GenerationMode(mode)
    names = [each.name for each in operation.path_parameters]
    paths = [
        dict(zip(names, each, strict=True))
        for each in itertools.product(*(NAMED[each] for each in names))
    ]
    bodies = BROUGHT.get(operation.definition.raw["operationId"], ()) if mode == "positive" else ()
    known = [
        *({"path_parameters": each} for each in paths if each),
        *({"path_parameters": path, "body": each} for path in paths for each in bodies),
    ]
    made = [operation.as_strategy(kind, **each) for each in ({}, *known)]
    return st.one_of(made)


def statuses(operation: APIOperation, mode: str, caplog: pytest.LogCaptureFixture) -> set[int]:
    """Send requests that *operation* allows, check that each answer is as described, and return the statuses."""
    import requests

    seen = set[int]()
    with described_worker() as worker, requests.Session() as session:

        @EXAMPLES
        @given(case=requests_of(operation, mode))
        def ask(case: Case) -> None:
            worker.settle()
            caplog.clear()
            answer = case.call(base_url=worker.url, session=session)
            case.validate_response(answer, checks=conformance())
            seen.add(answer.status_code)
            assert [] == [each for each in caplog.records if each.exc_info]

        ask()
    return seen


def conformance() -> list[CheckFunction]:
    """Kafka Connect answers malformed bodies with 500, so that this is no failure in itself."""
    from schemathesis.checks import CHECKS, load_all_checks

    load_all_checks()
    kinds = ("status_code", "content_type", "response_headers", "response_schema")
    return [*CHECKS.get_by_names([f"{each}_conformance" for each in kinds])]


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_well_formed_requests(
    schema: BaseSchema, caplog: pytest.LogCaptureFixture, *, method: str, path: str
):
    """Every answer is described, no trace is logged, and each success that is described is seen."""
    caplog.set_level(logging.ERROR)
    described = DESCRIBED["paths"][path][method]["responses"]
    seen = statuses(schema[path][method], "positive", caplog)

    assert {each for each in map(int, described) if each < 300} == {
        each for each in seen if each < 300
    }


@pytest.mark.parametrize(("method", "path"), MALFORMED)
def test_malformed_requests(
    schema: BaseSchema, caplog: pytest.LogCaptureFixture, *, method: str, path: str
):
    """Every answer is described, and no trace is logged."""
    caplog.set_level(logging.ERROR)

    assert statuses(schema[path][method], "negative", caplog)
