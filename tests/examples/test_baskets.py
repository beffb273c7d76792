"""The example of transactions that a connector ends, run for real with the configurations beside it."""

from __future__ import annotations

import json
import re
import textwrap
import uuid
from functools import partial
from pathlib import Path

import basket
import baskets
import once
import pytest

from headrace.testing.judge import committed_records

EXAMPLES = Path(baskets.__file__).parent
PAGE = EXAMPLES.parent / "docs" / "delivery.md"


run_once = partial(
    once.run_once,
    worker="baskets_worker.json",
    connector="baskets.json",
    place={"database": "baskets.db"},
    slots=1,
)


@pytest.mark.broker
def test_a_basket_is_there_as_a_whole_or_not_at_all(bootstrap: str, tmp_path: Path):
    """What was left is passed over for good; what is open at the end of a run is read again by the next."""
    topic = f"baskets-{uuid.uuid4().hex[:8]}"
    lines = ["tea", "paid", "rice", "salt", "left", "bread", "paid", "oil", "left", "soap"]
    basket.write(tmp_path / "baskets.db", *lines)
    run_once(bootstrap, tmp_path, topic)
    basket.write(tmp_path / "baskets.db", "paid")

    run_once(bootstrap, tmp_path, topic)

    found = [(record.value or b"").decode() for record in committed_records(bootstrap, topic)]
    assert ["tea", "paid", "bread", "paid", "soap", "paid"] == found


def test_the_page_shows_the_example():
    """Its Python is in the file, word for word, and so is its configuration."""
    page = PAGE.read_text()
    shown = [
        textwrap.indent(each, "    ")
        for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    ]
    (config,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)

    assert [True] == [each in (EXAMPLES / "baskets.py").read_text() for each in shown]
    assert json.loads((EXAMPLES / "baskets.json").read_text()) == json.loads(config)
