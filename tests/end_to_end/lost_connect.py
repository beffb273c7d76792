"""A worker on Spark Connect whose session is lost while it is idle: a program for tests.

In a process of its own, because a process has one Spark session. Reads what to do as JSON from its first
argument, prints one JSON line.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing
from pathlib import Path

from pyspark.sql.connect.session import SparkSession

from doubles.spark_connect import ConnectServer
from end_to_end.scene import Scene
from headrace.observe.events import ConnectorFailed, ConnectorIdle, Event, MicroBatchEnded
from headrace.spark.engine import SparkEngine
from headrace.spark.session import SparkSettings
from waiting import until

RECORDS = 2_000
# A server of Spark Connect starts twice in it, perhaps on a busy machine.
_SECONDS = 240.0


class Story:
    """Files that appear one by one, each to be sent before something happens to the session."""

    def __init__(self, scene: Scene, engine: SparkEngine) -> None:
        self._scene = scene
        self._engine = engine
        self.expected: list[bytes] = []
        self.sessions: list[str] = []

    def send_another(self) -> None:
        """Write a file and wait until it is in Kafka and the worker is idle; note the session."""
        number = len(self.sessions)
        lines = [b'{"file":%d,"line":%d}' % (number, line) for line in range(RECORDS)]
        # It appears in its place when all of it is written.
        made = self._scene.folder / f"part-{number}.jsonl"
        made.write_bytes(b"\n".join(lines) + b"\n")
        made.rename(self._scene.files / made.name)
        self.expected.extend(lines)
        until(self._all_is_sent, seconds=_SECONDS)
        witness = self._scene.witness
        witness.wait_for(_is_idle, since=len(witness.events))
        self.sessions.append(self.session().session_id)

    def session(self) -> SparkSession:
        """The session that the engine has."""
        session: object = self._engine.session()
        assert isinstance(session, SparkSession), session
        return session

    def _all_is_sent(self) -> bool:
        events = list(self._scene.witness.events)
        failed = [each for each in events if isinstance(each, ConnectorFailed)]
        assert not failed, failed
        sent = sum(each.committed_records for each in events if isinstance(each, MicroBatchEnded))
        return sent >= len(self.expected)


def _is_idle(event: Event) -> bool:
    return isinstance(event, ConnectorIdle)


def wrong_with(scene: Scene, server: ConnectServer) -> str:
    """Lose the session in both ways between micro-batches; what was wrong then, for a person."""
    engine = SparkEngine(SparkSettings(remote=server.url), slots=2)
    story = Story(scene, engine)
    # Closed sooner when all goes well; else its calls to a server that is gone would last for minutes.
    with scene.running(engine, once=False), closing(engine):
        with server:
            story.send_another()
            story.session().client.release_session()
            story.send_another()
        with server:
            story.send_another()
            engine.close()
    if len(set(story.sessions)) != 3:
        return f"the sessions were {story.sessions}"
    verdict = scene.verdict(story.expected)
    return "" if verdict.exactly_once else str(verdict)


def main() -> None:
    """Play it and print how it went."""
    asked = json.loads(sys.argv[1])
    folder = Path(asked["folder"])
    scene = Scene(
        asked["bootstrap"],
        folder,
        f"{asked['name']}-{os.getpid()}",
        worker={"headrace.idle.poll.ms": "200"},
    )
    wrong = wrong_with(scene, ConnectServer(folder))
    sys.stdout.write(json.dumps({"wrong": wrong}) + "\n")


if __name__ == "__main__":
    main()
