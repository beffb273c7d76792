"""The first example of the page about converters, run for real."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import once
import pytest

from headrace.testing.judge import committed_records

PAGE = (once.EXAMPLES.parent / "docs" / "converters.md").read_text()


@pytest.mark.broker
def test_lines_are_json_without_an_envelope(bootstrap: str, tmp_path: Path):
    """A connector's own converters count, and not those of its worker, which write plain text."""
    topic = f"json-{uuid.uuid4().hex[:8]}"
    shown = json.loads(PAGE.split("```json\n")[1].partition("```")[0])
    connector = {"name": "lines", "connector.class": "FileStreamSource", **shown}
    (tmp_path / "lines.json").write_text(json.dumps(connector))
    (tmp_path / "lines.txt").write_text('a\n"b"\n')

    once.run_once(
        bootstrap,
        tmp_path,
        topic,
        worker="short_lines_worker.json",
        connector=str(tmp_path / "lines.json"),
        place={"file": "lines.txt"},
        slots=1,
    )

    found = [(each.key, each.value) for each in committed_records(bootstrap, topic)]
    assert [(None, b'"a"'), (None, b'"\\"b\\""')] == found
