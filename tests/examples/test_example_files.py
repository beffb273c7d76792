"""The example data is what its README says, and what the demonstration relies on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import settings
from reading import records_by_file


@pytest.fixture(scope="module")
def example_records() -> dict[str, Counter[str]]:
    """The records of each file of the examples."""
    return records_by_file(settings.ROOT / settings.FILES)


def test_counts(example_records: dict[str, Counter[str]]):
    """The README names the number of records of every file."""
    readme = (settings.ROOT / settings.FILES / "README.md").read_text()

    for name, records in example_records.items():
        assert f"{records.total():,}" in readme, name
        assert Path(name).name in readme, name


def test_no_record_in_two_files(example_records: dict[str, Counter[str]]):
    """A record tells which file it is from, so that each file can be accounted for."""
    places = Counter(record for records in example_records.values() for record in set(records))

    assert 1 == max(places.values())
