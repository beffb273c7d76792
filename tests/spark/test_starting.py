"""What is told while Spark starts."""

from __future__ import annotations

import logging
from typing import ClassVar

import pyarrow as pa
import pytest

from headrace.spark import engine as engines
from headrace.spark.engine import SparkEngine
from headrace.spark.session import SparkSettings


class Session:
    """A session that has just been opened."""


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    """What opening one comes to, without Spark."""
    made = Session()
    monkeypatch.setattr(engines, "open_session", lambda _: made)
    monkeypatch.setattr(engines, "_refuse_speculation", lambda _: None)
    monkeypatch.setattr(engines, "_run", lambda *_: [])
    return made


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        (SparkSettings(master="local[2]"), "local[2]"),
        (SparkSettings(remote="sc://there:15002/;token=secret"), "sc://there:15002"),
    ],
)
def test_a_start_is_told_when_it_begins_and_when_it_is_through(
    session: Session, caplog: pytest.LogCaptureFixture, settings: SparkSettings, place: str
) -> None:
    """It takes ten seconds and more, of which nothing is seen otherwise; secrets are not told."""
    caplog.set_level(logging.INFO)
    engine = SparkEngine(settings, slots=2)

    assert engine.session() is session
    engine.session()
    begun, ready = caplog.messages
    assert f"Starting Spark ({place}) …" == begun
    assert ready.startswith(f"Spark ({place}) is ready after ")


def test_somebody_s_own_session_is_not_started(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    """So nothing is told of it."""
    caplog.set_level(logging.INFO)
    SparkEngine(SparkSettings(), slots=2, session=session).session()  # type: ignore[arg-type]

    assert [] == caplog.messages


def test_spark_starts_until_its_first_job_is_done() -> None:
    """Python processes take long, too, where a machine is busy: nobody need look for free cores by then."""
    starting = list[bool]()

    class Given:
        """Somebody's session, which runs jobs."""

        conf: ClassVar[dict[str, str]] = {}

        def range(self, *_: int) -> Given:
            """A frame, whatever is in it."""
            return self

        def mapInArrow(self, *_: object) -> Given:  # noqa: N802 (Spark's name)
            """Another."""
            return self

        def toArrow(self) -> pa.Table:  # noqa: N802 (Spark's name)
            """The job."""
            starting.append(engine.is_starting)
            return pa.table({})

    engine = SparkEngine(SparkSettings(), slots=2, session=Given())  # type: ignore[arg-type]
    engine.run([])

    assert ([True, False], False) == (starting, engine.is_starting)
