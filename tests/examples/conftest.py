"""Makes the examples' modules importable, as Python does when it runs them."""

from __future__ import annotations

import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path[:0] = [str(EXAMPLES), str(EXAMPLES / "demo"), str(Path(__file__).parent)]
