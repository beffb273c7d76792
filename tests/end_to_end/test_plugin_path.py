"""`headrace run` with plugins of each kind that lie in a folder of ``plugin.path``, and nowhere else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from end_to_end.scene import Scene
from headrace.testing.judge import committed_records

pytestmark = [pytest.mark.broker, pytest.mark.spark]

CHAIN = {
    "transforms": "twice",
    "transforms.twice.type": "Twice",
    "transforms.twice.predicate": "b",
    "predicates": "b",
    "predicates.b.type": "IsLetter",
    "predicates.b.letter": "b",
}
PLUGIN = {
    "pathtap.py": """
from headrace.connectors.file_stream import FileStreamSourceConnector, FileStreamSourceTask

class TapTask(FileStreamSourceTask):
    def start(self, config):
        # What is imported this late was not shipped with the task's module.
        import pathparts
        super().start(config | {"topic": pathparts.topic(config)})

class TapConnector(FileStreamSourceConnector):
    task_class = TapTask
""",
    "pathparts.py": "def topic(config): return config['topic'].removesuffix('-not-yet')",
    "pathshout.py": """
from headrace.converters.string_converter import StringConverter

class ShoutConverter(StringConverter):
    def encode(self, topic, schema, values):
        import pyarrow.compute as pc
        return super().encode(topic, schema, pc.utf8_upper(values))
""",
    "pathchain.py": """
from dataclasses import replace

class TwiceTransform:
    def configure(self, config): pass

    def apply(self, record):
        return replace(record, value=2 * record.value)

class IsLetterPredicate:
    def configure(self, config):
        self.letter = config["letter"]

    def test(self, record):
        return record.value == self.letter
""",
}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_connector_of_plugin_path_delivers_through_a_chain_and_a_converter_of_it(
    bootstrap: str, tmp_path: Path
) -> None:
    """In Spark's own Python processes, which find what the plugin's modules import, too."""
    scene = Scene(bootstrap, tmp_path, f"plugin-path-{os.getpid()}")
    scene.worker |= {"plugin.path": "plugins", "value.converter": "Shout"}
    paths = scene.write_configs()
    (tmp_path / "lines").write_text("a\nb\n")
    given = CHAIN | {
        "connector.class": "Tap",
        "topic": f"{scene.topic}-not-yet",
        "name": scene.topic,
    }
    Path(paths[1]).write_text(json.dumps(given | {"file": str(tmp_path / "lines")}))
    for name, text in PLUGIN.items():
        place = tmp_path / "plugins" / "taps-1.0" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    ran = subprocess.run(
        [sys.executable, "-m", "headrace", "run", *paths, "--once"],
        capture_output=True,
        text=True,
        check=False,
        timeout=270,
    )

    assert 0 == ran.returncode, ran.stderr
    assert [b"A", b"BB"] == [each.value for each in committed_records(bootstrap, scene.topic)]
