"""What the demonstration runs: a worker and two connectors, as their configuration files would say it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# Relative to ROOT, where the demonstration runs: a clone's path may hold anything.
FILES = Path("examples/data")
FOLDER = ROOT / ".cache" / "demo"
LOG = FOLDER / "demo.log"

# Per task. The files are small; unheld, all would be over before one can look.
FLIGHTS_PER_SECOND = 4_000
WEATHER_PER_SECOND = 700
# Two for each connector.
SLOTS = 4

NUMBERS = (
    *("year", "month", "day", "hour", "temp", "dewp", "humid", "wind_dir"),
    *("wind_speed", "wind_gust", "precip", "pressure", "visib"),
)
NOT_KNOWN = "NA"


def worker_props(bootstrap: str) -> dict[str, str]:
    """The worker's configuration. Exactly-once is the default."""
    return {
        "bootstrap.servers": bootstrap,
        "group.id": "demo",
        "key.converter": "string",
        "value.converter": "json",
        "value.converter.schemas.enable": "false",
        "state.file": str(FOLDER / "state.db"),
        "headrace.slots": str(SLOTS),
    }


def connectors() -> dict[str, dict[str, str]]:
    """The connectors' configurations by name; each sends to the topic of its name."""
    return {
        "flights": {
            "name": "flights",
            "connector.class": "files",
            "tasks.max": "2",
            "topic": "flights",
            "files.path": str(FILES / "flights"),
            "headrace.max.records.per.second": str(FLIGHTS_PER_SECOND),
        },
        "weather": {
            "name": "weather",
            "connector.class": "files",
            "tasks.max": "2",
            "topic": "weather",
            "files.path": str(FILES / "weather"),
            "csv.null": NOT_KNOWN,
            "csv.types": ",".join(f"{name}:number" for name in NUMBERS),
            "headrace.max.records.per.second": str(WEATHER_PER_SECOND),
        },
    }
