"""Which class a request means, how it is refused, and that a spec is made of exactly what validates."""

from __future__ import annotations

import pytest

from headrace.connect.errors import ConfigError
from headrace.herder.errors import BadRequestError, ServerError, refusal
from headrace.plugins.config_def import refused_null
from plugins.judged import (
    CONNECTOR,
    FILE_STREAM,
    run_spec,
    validated,
    validator,
)

NO_PASSWORD = "A secret of the test"


def test_a_refusal_has_every_message_on_a_line():
    """As the answer to a creation has it."""
    refused = refusal(validated({"tasks.max": "x", "topic": None}))

    assert refused is not None
    assert (
        "Connector configuration is invalid and contains the following 3 error(s):\n"
        "Invalid value x for configuration tasks.max: Not a number of type INT\n"
        "Invalid value null for configuration tasks.max: Value must be non-null\n"
        f"{refused_null('topic')}\n"
        "You can also find the above list of errors at the endpoint "
        "`/connector-plugins/{connectorType}/config/validate`"
    ) == str(refused)
    assert refusal(validated({})) is None


def test_without_a_class_there_is_nothing_to_validate():
    """A bad request on creation, which the validation's own path wraps; secrets are not repeated."""
    given = {"name": "c", "sasl.jaas.config": NO_PASSWORD}
    reported = "Connector config {name=c, sasl.jaas.config=[hidden]} contains no connector type"

    with pytest.raises(BadRequestError) as refused:
        validator().validate(given)
    with pytest.raises(ServerError) as wrapped:
        validator().validate(given, "FileStreamSource")

    assert reported == str(refused.value)
    assert f"org.apache.kafka.connect.runtime.rest.errors.BadRequestException: {reported}" == str(
        wrapped.value
    )


def test_an_unknown_class_is_refused_with_what_there_is():
    """The same each time."""
    judge = validator()
    for _ in range(2):
        with pytest.raises(BadRequestError) as refused:
            judge.validate({"connector.class": "nope"})

        assert str(refused.value).startswith(
            "Failed to find any class that implements Connector and which name matches nope, "
            "available connectors are: "
        )


@pytest.mark.parametrize(
    "name", [FILE_STREAM, "FileStreamSource", "Source", "file.FileStreamSourceConnector"]
)
def test_the_path_of_a_validation_may_be_the_end_of_the_class(name: str):
    """Kafka Connect compares the ends of the names."""
    assert 0 == validator().validate(CONNECTOR, name).error_count


@pytest.mark.parametrize(
    ("given", "path"), [(FILE_STREAM, "JdbcSource"), ("FileStreamSource", FILE_STREAM)]
)
def test_another_class_than_in_the_path_is_refused(given: str, path: str):
    """With 400, not wrapped."""
    with pytest.raises(BadRequestError) as refused:
        validator().validate({**CONNECTOR, "connector.class": given}, path)

    assert f"Included connector type {given} does not match request type {path}" == str(
        refused.value
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"tasks.max": "0"},
        {"topic": "a b"},
        {"transforms": "a", "transforms.a.type": "Cast$Key"},
        {"key.converter": "nope"},
        {"producer.override.acks": "some"},
        {"exactly.once.support": "required", "file": ""},
        {"errors.retry.timeout": "5"},
        {"errors.tolerance": "all"},
        {"tasks.max": "2", "unknown": "x"},
    ],
)
def test_what_validates_gets_a_spec_and_nothing_else(changes: dict[str, str]):
    """Both ask the same questions."""
    given, judge = {**CONNECTOR, **changes}, validator()
    if judge.validate(given).error_count:
        with pytest.raises(ConfigError):
            run_spec(judge, given)
    else:
        assert "c" == run_spec(judge, given).name
