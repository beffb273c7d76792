"""What the texts of settings and messages say where it is easily said wrong."""

from __future__ import annotations

import pytest

from headrace.connect.config import Config
from headrace.connect.errors import TaskFailedError
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.formats import format_of
from headrace.sources import SourceConfig


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_json_is_told_what_it_may_be(name: str):
    """Its extension is that of whole documents, too, so that nothing is taken for granted."""
    config = FilesConfig.parse({"files.path": "in", "topic": "t"})

    with pytest.raises(TaskFailedError, match=r"`\.json`: set files\.format=jsonl if each line is"):
        format_of(name, config)
    with pytest.raises(TaskFailedError, match=r"Set files\.format, or name the files"):
        format_of("a.xyz", config)


@pytest.mark.parametrize(
    ("config", "key", "words"),
    [
        (FilesConfig, "files.name.regex", "files in whose path it is not"),
        (
            FilesConfig,
            "files.min.age.ms",
            "a Parquet file, or with the header or field last any file",
        ),
        (SourceConfig, "distribution.type", "its key or context tells"),
        (SourceConfig, "ring.buffer.size", "look-back"),
        (SourceConfig, "extractor.class", "with its usual dialect"),
    ],
)
def test_settings_say_what_they_do(config: type[Config], key: str, words: str):
    """In the words of the page."""
    (found,) = (each for each in config.settings() if each.name == key)

    assert words in (found.doc or "")
