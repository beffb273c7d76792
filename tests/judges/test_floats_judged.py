"""Floating-point numbers as text against Java's own, whatever their bits."""

from __future__ import annotations

import random
import struct

import numpy as np
import pyarrow as pa
import pytest

from headrace.connect.schema import FLOAT64, Schema, SchemaType
from headrace.java.numbers import java_floats
from judges.java_judge import JavaJudge
from judges.told import Told

pytestmark = pytest.mark.broker

STRING_CONVERTER = "org.apache.kafka.connect.storage.StringConverter"
FLOAT32 = Schema(type=SchemaType.FLOAT32)
MANY = 20_000
SUBNORMAL_BITS = {"d": 52, "f": 23}


def drawn(form: str) -> list[float]:
    """Numbers of 64 (``d``) or 32 (``f``) bits: any, near powers of ten, of few digits, subnormal, and none."""
    chance = random.Random(19)
    width = struct.calcsize(form)
    kind = np.float64 if form == "d" else np.float32

    def of(bits: int) -> float:
        return struct.unpack(form, bits.to_bytes(width, "little"))[0]

    whole = [of(chance.getrandbits(8 * width)) for _ in range(MANY)]
    small = [of(chance.getrandbits(SUBNORMAL_BITS[form])) for _ in range(MANY // 10)]
    smallest = [of(bits) for bits in range(64)]
    limits = (-320, 308) if form == "d" else (-45, 38)
    powers = [float(kind(f"{chance.randint(-99, 99)}e{n}")) for n in range(*limits)]
    shifted = [
        float(np.nextafter(kind(each), kind(way))) for each in powers for way in (-np.inf, np.inf)
    ]
    prices = [
        float(kind(round(chance.uniform(-1e9, 1e9), chance.randint(0, 5))))
        for _ in range(MANY // 4)
    ]
    rest = [0.0, -0.0, float("nan"), float("inf"), float("-inf")]
    return [*whole, *small, *smallest, *powers, *shifted, *prices, *rest]


@pytest.mark.parametrize(
    ("form", "schema", "kind"), [("d", FLOAT64, pa.float64()), ("f", FLOAT32, pa.float32())]
)
def test_numbers_are_written_as_java_writes_them(
    judge: JavaJudge, form: str, schema: Schema, kind: pa.DataType
):
    """All of a column at once, to the last digit."""
    numbers = drawn(form)
    theirs = judge.converted(STRING_CONVERTER, [Told(schema, each, schema) for each in numbers])

    ours = [each.encode() for each in java_floats(pa.array(numbers, kind)).to_pylist()]

    assert [] == [pair for pair in zip(numbers, theirs, ours, strict=True) if pair[1] != pair[2]]
