"""Every check of the project, one line for each; arguments go to pytest."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from children import catch_signals, run

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
LINT_IMPORTS = "import sys; from importlinter.cli import lint_imports_command as c; sys.exit(c())"
STEPS = {
    "formatting": [PYTHON, "-m", "ruff", "format", "--check", "."],
    "lint": [PYTHON, "-m", "ruff", "check", "."],
    "types": [PYTHON, "-m", "pyright", "--pythonpath", PYTHON],
    "import rules": [PYTHON, "-c", LINT_IMPORTS, "--no-cache"],
}


def main() -> None:
    """Run all of them, also after one has failed; the exit code is 1 when one has."""
    catch_signals()
    failed = [name for name, command in STEPS.items() if not quiet_step(name, command)]
    tests = [PYTHON, "-m", "pytest", "-q", "--durations=25", "--durations-min=5", *sys.argv[1:]]
    print("tests:", flush=True)
    if run(tests, cwd=ROOT):
        failed.append("tests")
    if failed:
        sys.exit(f"FAILED: {', '.join(failed)}")
    print("All checks passed.")


def quiet_step(name: str, command: list[str]) -> bool:
    """Run one check, showing what it says only when it fails."""
    started = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        code = run(command, cwd=ROOT, output=output)
        output.seek(0)
        said = output.read()
    seconds = time.monotonic() - started
    print(f"{name}: {'FAILED' if code else 'ok'} ({seconds:.1f} s)", flush=True)
    if code:
        print(said, flush=True)
        print(f"To run this alone: {subprocess.list2cmdline(command)}", flush=True)
    return code == 0


if __name__ == "__main__":
    main()
