"""What happens to topics while the slots of a mirror follow them: each policy, and other topics are copied on and on."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Producer

from doubles.thread_engine import ThreadEngine
from end_to_end.live import Life
from end_to_end.mirrored import SOURCE, Mirrored
from end_to_end.served import served, states
from headrace.broker import Broker
from spark.kafka.tables import Topics
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(400)]

FAIL, CONTINUE, RESTART = "fail", "continue", "restart"


class Followed:
    """A flow with one policy for *key*, whose topic is ``t``; a topic ``busy`` keeps its slot at work."""

    def __init__(self, source: str, life: Life, key: str, policy: str) -> None:
        self.flow = Mirrored(Topics(source), life.bootstrap)
        self._life = life
        self._settings = {key: policy, "tasks.max": "1"}
        self.topic, self.busy = (self.flow.topics.create(name) for name in ("t", "busy"))
        self.remote = f"{SOURCE}.{self.topic}"
        self.first = self.flow.topics.write(self.topic, 10)

    def config(self, **settings: str) -> dict[str, str]:
        """The connector's, with *settings*, whose dots are underscores here."""
        given = {key.replace("_", "."): value for key, value in settings.items()}
        return self.flow.connector({**self._settings, **given})

    def copies(self) -> list[str]:
        """What the remote topic has."""
        return self._life.values(self.remote)

    def is_at(self, offset: int) -> bool:
        """Whether the topic's position is there."""
        return self.flow.positions().get((self.topic, 0)) == offset

    def has_failed(self, http: httpx.Client, sentence: str) -> bool:
        """Whether it says *sentence*, while its task copies the rest."""
        found = http.get(f"/connectors/{self.flow.name}/status").json()["connector"]
        is_failed = states(http, self.flow.name) == ("FAILED", {"RUNNING"})
        return is_failed and sentence in found.get("trace", "")


@pytest.fixture
def life(broker: Broker, tmp_path: Path) -> Life:
    """A worker of the mortal broker, with a slot for each of three flows."""
    return Life(broker.bootstrap, tmp_path, engine=ThreadEngine(slots=3))


@contextmanager
def following(life: Life, flows: Sequence[Followed]) -> Generator[httpx.Client]:
    """Everything there is has been copied, and the slots stay, as something is written all the time; in the end it is there, too."""
    done = threading.Event()

    def write_on(producers: Mapping[str, Producer]) -> None:
        while not done.wait(0.02):
            for topic, producer in producers.items():
                producer.produce(topic, value="v", partition=0)
                producer.poll(0)
        assert not any(each.flush(30) for each in producers.values())

    with served(life) as http:
        for each in flows:
            http.put(f"/connectors/{each.flow.name}/config", json=each.config())
        producers = {each.busy: each.flow.topics.producer() for each in flows}
        writer = threading.Thread(target=write_on, args=[producers])
        writer.start()
        try:
            for each in flows:
                until(lambda each=each: each.is_at(10), seconds=120)
            yield http
        finally:
            done.set()
            writer.join(60)
        for each in flows:
            end = each.flow.ends([each.busy])
            until(
                lambda each=each, end=end: end.items() <= each.flow.positions().items(), seconds=120
            )
    for each in flows:
        assert {} == each.flow.differences([each.busy])


def test_a_topic_is_made_again(bootstrap: str, life: Life) -> None:
    """Nothing of the new one is copied, or all of it, or what is behind the old position."""
    stops, goes_on, begins = flows = [
        Followed(bootstrap, life, "mirror.on.recreated", each) for each in (FAIL, CONTINUE, RESTART)
    ]
    with following(life, flows) as http:
        new = dict[Followed, list[str]]()
        for each in flows:
            each.flow.topics.delete(each.topic)
            each.flow.topics.create("t")
            new[each] = each.flow.topics.write(each.topic, 15)
        said = f"The topic {stops.topic} was deleted and created again at the source"
        until(lambda: stops.has_failed(http, said), seconds=120)
        for each in (goes_on, begins):
            until(lambda each=each: each.is_at(15), seconds=120)

    assert stops.first == stops.copies()
    assert goes_on.first + new[goes_on][10:] == goes_on.copies()
    assert begins.first + new[begins] == begins.copies()


def test_a_remote_topic_is_deleted(bootstrap: str, life: Life) -> None:
    """It is not made again without being asked; where it is, it gets what is left, or all if the position went with it."""
    stops, goes_on = flows = [
        Followed(bootstrap, life, "mirror.on.remote.removed", each) for each in (FAIL, CONTINUE)
    ]
    target = Topics(life.bootstrap)
    with following(life, flows) as http:
        more = dict[Followed, list[str]]()
        for each in flows:
            target.delete(each.remote)
            more[each] = each.flow.topics.write(each.topic, 5)
        said = f"The remote topic {stops.remote} is gone from the target"
        until(lambda: stops.has_failed(http, said), seconds=120)
        until(lambda: goes_on.is_at(15), seconds=120)
        assert stops.remote not in target.admin.list_topics(timeout=10).topics

    # The driver may know the position from its last plan; the brokers have removed it.
    assert goes_on.copies() in (more[goes_on], goes_on.first + more[goes_on])


def test_records_are_deleted_before_they_are_copied(bootstrap: str, life: Life) -> None:
    """An open transaction holds the mirror back until then."""
    stops, goes_on = flows = [
        Followed(bootstrap, life, "mirror.on.lost", each) for each in (FAIL, CONTINUE)
    ]
    with following(life, flows) as http:
        left = dict[Followed, list[str]]()
        for each in flows:
            topics = each.flow.topics
            transaction = topics.transactional("held")
            topics.produce(transaction, each.topic, topics.values(each.topic, 5))
            left[each] = topics.write(each.topic, 10)[3:]
            topics.delete_records(each.topic, 18)
            transaction.abort_transaction(30)
            left[each] += topics.write(each.topic, 5)
        said = (
            f"{stops.topic}-0 is to be copied from offset 10 on, and the source's log begins at 18"
        )
        until(lambda: stops.has_failed(http, said), seconds=120)
        # Of which one is the marker.
        until(lambda: goes_on.is_at(31), seconds=120)

    assert stops.first == stops.copies()
    assert goes_on.first + left[goes_on] == goes_on.copies()


def test_the_alias_is_given_to_another_cluster(
    bootstrap: str, first_bootstrap: str, life: Life
) -> None:
    """Whose topic is taken for the same one only where that is set."""
    stops, goes_on = flows = [
        Followed(bootstrap, life, "mirror.on.foreign", each) for each in (FAIL, CONTINUE)
    ]
    others = dict[Followed, list[str]]()
    with following(life, flows) as http:
        for each in flows:
            other = Topics(first_bootstrap)
            other.prefix = each.flow.topics.prefix
            others[each] = other.write(other.create("t"), 15)
    with served(life) as http:
        for each in flows:
            config = each.config(source_cluster_bootstrap_servers=first_bootstrap)
            http.put(f"/connectors/{each.flow.name}/config", json=config)
        said = f"{stops.topic}-0 was copied before offset 10 from the cluster with the id "

        def trace() -> str:
            found = http.get(f"/connectors/{stops.flow.name}/status").json()
            return found["connector"].get("trace", "")

        until(lambda: said in trace(), seconds=120)
        until(lambda: goes_on.is_at(15), seconds=120)

    assert stops.first == stops.copies()
    assert goes_on.first + others[goes_on][10:] == goes_on.copies()
