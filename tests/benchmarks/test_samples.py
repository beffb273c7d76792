"""The files that are read."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from benchmarks.samples import FIELDS, csv_row, csv_sample, csv_value, json_line, jsonl_sample


def test_lines_are_json():
    """Each line is a JSON object of its own, with its number."""
    assert [5, 6] == [json.loads(json_line(number))["id"] for number in (5, 6)]


def test_rows_and_values_agree():
    """A CSV row's fields are what its value in Kafka says."""
    (row,) = csv.reader([csv_row(1234)])

    assert json.loads(csv_value(1234)) == dict(zip(FIELDS, row, strict=True))


def test_files_are_about_150_bytes_a_record(tmp_path: Path):
    """Both kinds of file hold what they promise."""
    samples = [make(tmp_path, 20_001) for make in (jsonl_sample, csv_sample)]

    assert all(135 < sample.bytes_each < 165 for sample in samples)
    assert [20_001, 20_002] == [len(s.path.read_text().splitlines()) for s in samples]
