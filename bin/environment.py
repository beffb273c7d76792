"""Makes the project's environment in .venv from hash-checked pins, then becomes a program in it.

    environment.py run|check PROGRAM [ARGUMENT…]

Standard library only: it runs on a Python that has nothing else. When what it would make is there
already, it does nothing but start the program.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

from children import catch_signals, run

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "headrace-environment.json"
LOG = ROOT / ".cache" / "environment.log"
# What holds more than what: the environment of the tests will do for the demo.
ENOUGH_FOR = {"run": ("run", "check"), "check": ("check",)}
BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
)
OWN_CERTIFICATES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def main() -> None:
    """Make the environment if need be, then be the program."""
    wanted, program, *arguments = sys.argv[1:]
    key = key_of_environment()
    if not is_made(wanted, key):
        catch_signals()
        LOG.parent.mkdir(exist_ok=True)
        with (LOG.parent / "environment.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not is_made(wanted, key):
                make(wanted, key)
    os.execv(PYTHON, [str(PYTHON), program, *arguments])


def key_of_environment() -> str:
    """A digest of all that decides what the environment holds."""
    digest = hashlib.sha256(f"{sys.version_info[:2]} {sys.base_prefix} {ROOT}".encode())
    for file in (*sorted((ROOT / "requirements").glob("*.txt")), ROOT / "pyproject.toml"):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def is_made(wanted: str, key: str) -> bool:
    """Whether the environment is there, whole, and made from what the files say now."""
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return False
    return stamp["key"] == key and stamp["holds"] in ENOUGH_FOR[wanted] and PYTHON.exists()


def make(wanted: str, key: str) -> None:
    """Make it, or add what the tests need to that of the demo.

    What an interrupted run has left has no stamp and is not trusted.
    """
    print(f"Making the Python environment in {VENV} (once; this takes a few minutes) …", flush=True)
    LOG.unlink(missing_ok=True)
    if not is_made("run", key):
        shutil.rmtree(VENV, ignore_errors=True)
        step([sys.executable, "-m", "venv", str(VENV)], advice=advice_on_venv())
    STAMP.unlink(missing_ok=True)
    os.environ.update(certificates())
    pip = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check"]
    pinned = [*pip, "--require-hashes", "--no-build-isolation", "--use-pep517", "-r"]
    for name in ("build", wanted):
        step([*pinned, str(ROOT / "requirements" / f"{name}.txt")], advice=advice_on_pip())
    own = [*pip, "--no-deps", "--no-build-isolation", "--no-index", "-e", str(ROOT)]
    step(own, advice="Is the clone complete? `git status` shows it.")
    STAMP.write_text(json.dumps({"key": key, "holds": wanted}))


def certificates() -> dict[str, str]:
    """Where pip finds the system's certificates, a company proxy's among them.

    Newer versions of pip ask the system; older ones know only what they brought.
    """
    named = (*OWN_CERTIFICATES, "PIP_CONFIG_FILE")
    if sys.platform == "darwin" or any(os.environ.get(name) for name in named):
        return {}
    for bundle in (os.environ.get("SSL_CERT_FILE", ""), *BUNDLES):
        if bundle and Path(bundle).is_file():
            return {"PIP_CERT": bundle}
    return {}


def step(command: list[str], *, advice: str) -> None:
    """Run one command; when it fails, print the end of its output and what to do, and end."""
    with LOG.open("a") as output:
        print("$", *command, file=output, flush=True)
        code = run(command, cwd=ROOT, output=output)
    if code:
        tail = "\n".join(f"  {line}" for line in LOG.read_text(errors="replace").splitlines()[-12:])
        sys.exit(f"This failed, and its output ({LOG}) ends with:\n{tail}\n{advice}")


def advice_on_venv() -> str:
    """What helps when Python cannot make an environment."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return (
        f"On Debian and Ubuntu the package python{version}-venv is missing then; elsewhere, name "
        "another Python in HEADRACE_PYTHON. Is there space on the disk?"
    )


def advice_on_pip() -> str:
    """What helps when packages cannot be fetched."""
    return (
        "Packages come from the index that pip is configured for. Check the network, the proxy\n"
        "(https_proxy; PIP_CERT for its certificate) and, for a mirror of your own, PIP_INDEX_URL.\n"
        "If it reports hashes, the index has delivered other files than those that are pinned.\n"
        "Then start this again."
    )


if __name__ == "__main__":
    main()
