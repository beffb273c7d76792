"""Objects of an S3 bucket to a real broker, with bad moments on both sides: nothing lost, nothing twice."""

from __future__ import annotations

import gzip
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from connectors.stores.s3_owner import S3Owner
from connectors.stores.s3_proxy import Fault, Proxy, running
from connectors.stores.s3_server import s3_server
from doubles.process_engine import ProcessEngine
from doubles.thread_engine import ThreadEngine
from end_to_end.scene import Scene
from headrace.stores.s3.client import client_of
from headrace.stores.s3.config import S3Config

pytestmark = [pytest.mark.broker]


@dataclass
class BucketScene(Scene):
    """A scene whose files are objects of a bucket, packed by *pack*, whose names end with *suffix*."""

    endpoint: str = ""
    suffix: str = ""
    pack: Callable[[bytes], bytes] = bytes
    props: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.props = {
            "s3.endpoint": self.endpoint,
            "s3.region": "us-east-1",
            "s3.access.key.id": "id",
            "s3.secret.access.key": "very-secret",
            "s3.retry.backoff.ms": "10",
        }
        self.connector |= {"files.path": f"s3://{self.topic}/in/", **self.props}

    def write(self, *, files: int = 2, records: int = 16_000) -> list[bytes]:
        """Write objects with *records* each; every record is another one."""
        expected = super().write(files=files, records=records)
        config = S3Config.parse({**self.props, "s3.bucket": self.topic})
        client = cast("S3Owner", client_of(config))
        client.create_bucket(Bucket=self.topic)
        for path in self.files.iterdir():
            key, body = f"in/{path.name}{self.suffix}", self.pack(path.read_bytes())
            client.put_object(Bucket=self.topic, Key=key, Body=body)
        return expected


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Proxy, str]]:
    """A proxy in front of an S3 server, and its address."""
    with s3_server() as port:
        proxy = Proxy(port)
        with running(proxy) as endpoint:
            yield proxy, endpoint


@pytest.fixture
def proxy(shared: tuple[Proxy, str]) -> Proxy:
    """The proxy, with bad moments for the first readers of each object."""
    shared[0].forget()
    for number in range(2):
        shared[0].fail(Fault("GET", f"part-{number}", status=503, code="SlowDown"))
        shared[0].fail(Fault("GET", f"part-{number}", cut_at=70_000, times=2))
    return shared[0]


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.kill
@pytest.mark.parametrize(("seed", "suffix"), [(1, ""), (2, ".gz")])
def test_a_killed_slot_loses_nothing_and_doubles_nothing(  # noqa: PLR0917
    bootstrap: str,
    tmp_path: Path,
    processes: ProcessEngine,
    proxy: Proxy,
    shared: tuple[Proxy, str],
    seed: int,
    suffix: str,
) -> None:
    """Its work goes on in the middle of the object, over connections that break."""
    topic = f"s3-kill-{seed}-{os.getpid()}"
    pack = gzip.compress if suffix else bytes
    scene = BucketScene(bootstrap, tmp_path, topic, endpoint=shared[1], suffix=suffix, pack=pack)

    failures, verdict = scene.killed_slot_round(processes, random.Random(seed))

    assert {} == failures
    assert scene.witness.replanned()
    assert verdict.exactly_once, verdict
    assert any("part-1" in target for _, target in proxy.seen)


def test_a_store_that_goes_away_is_waited_for(
    bootstrap: str, tmp_path: Path, proxy: Proxy, shared: tuple[Proxy, str]
) -> None:
    """By slots and by plans, for longer than their own attempts; a slot goes on behind what it has sent."""
    scene = BucketScene(
        bootstrap,
        tmp_path,
        f"s3-away-{os.getpid()}",
        endpoint=shared[1],
        connector={"headrace.max.records.per.second": "1000000", "s3.retries": "1"},
    )
    expected = scene.write()
    proxy.fail(Fault("GET", "part-0", times=6, status=503, code="SlowDown"))
    proxy.fail(Fault("GET", "list-type", times=3, status=500, code="InternalError"))

    assert {} == scene.run_once(ThreadEngine(slots=2))

    verdict = scene.verdict(expected)
    assert verdict.exactly_once, verdict
