"""What the tests of Spark's start do not touch."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def cache_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder that lasts as long as the Java home in it, which a process looks for once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _cache_of_their_own(
    request: pytest.FixtureRequest, cache_of_tests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Starts that are only played would remove the class archive that real ones begin from."""
    if request.node.get_closest_marker("spark") is None:
        monkeypatch.setenv("HEADRACE_CACHE", str(cache_of_tests))
