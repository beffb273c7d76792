"""The author guide's commands: what letter.py writes is what the connector's configuration reads."""

from __future__ import annotations

import json
from pathlib import Path

import letter
import letters
import pytest

ROOT = Path(letters.__file__).parents[1]


def test_a_letter_is_written_where_the_connector_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Both run in the clone's root; a letter has a line for each argument."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["letter.py", "Dear reader,", "all is well."])
    props = json.loads((ROOT / "examples" / "letters.json").read_text())

    letter.main()

    source = letters.Letters(props["database"])
    try:
        (found,) = source.items(None)
    finally:
        source.close()
    assert b"Dear reader,\nall is well.\n" == found.open().read()


def test_the_guide_names_the_path_of_the_configuration():
    """And writes there with the example."""
    database = json.loads((ROOT / "examples" / "letters.json").read_text())["database"]
    page = (ROOT / "docs" / "write-a-native-source.md").read_text()

    assert f"`{database}`" in page
    assert str(letter.DATABASE) == database
    assert "examples/letter.py" in page
