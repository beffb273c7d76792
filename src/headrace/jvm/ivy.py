"""Fetches pinned jars with Apache Ivy, which lies in PySpark's own folder of jars."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from headrace.connect.errors import ConnectError
from headrace.jvm.java import Java
from headrace.jvm.pins import Pin

# A slow line takes minutes for 50 MB in some 200 requests; more than this is a line that hangs.
FETCH_SECONDS = 900.0
TELLING = ("ERROR", "WARN", "Exception", "unresolved", "not found")


def spark_jars() -> Path:
    """PySpark's folder of jars, found without importing PySpark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ConnectError("PySpark is not installed: pip install 'pyspark[connect]'")
    return Path(spec.origin).parent / "jars"


def ivy_jar() -> Path:
    """Apache Ivy's jar; raises ConnectError where this PySpark has none."""
    found = sorted(spark_jars().glob("ivy-*.jar"))
    if not found:
        raise ConnectError(f"There is no ivy-*.jar in {spark_jars()}: reinstall pyspark with pip.")
    return found[-1]


def module_xml(pins: Sequence[Pin]) -> str:
    """An Ivy module that depends on exactly *pins* and on nothing that they ask for."""
    wanted = "\n".join(
        f"    <dependency org={quoteattr(pin.organisation)} name={quoteattr(pin.name)} "
        f'rev={quoteattr(pin.revision)} transitive="false" conf="default->master"/>'
        for pin in pins
    )
    return f"""<ivy-module version="2.0">
  <info organisation="headrace" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{wanted}
  </dependencies>
</ivy-module>
"""


def retrieve(
    pins: Sequence[Pin], folder: Path, *, java: Java, cache: Path, options: Sequence[str]
) -> None:
    """Put the jars of *pins* into *folder*.

    *cache* is Ivy's own folder, *options* are Java's. Raises ConnectError with Ivy's own words; what
    lies in *folder* then is of no use.
    """
    module = folder / "ivy.xml"
    module.write_text(module_xml(pins))
    command = [str(java.executable), *options, *proxy_options(os.environ), "-jar", str(ivy_jar())]
    settings = os.environ.get("HEADRACE_IVY_SETTINGS")
    command += ["-settings", settings] if settings else []
    command += ["-cache", str(cache), "-ivy", str(module), "-confs", "default"]
    command += ["-retrieve", f"{folder}/[artifact]-[revision].[ext]"]
    log = cache / "last.log"
    code = _run(command, log)
    module.unlink()
    if code:
        words = "\n".join(_telling(log.read_text(errors="replace")))
        raise ConnectError(f"Apache Ivy could not fetch the jars (its output: {log}).\n{words}")


def _run(command: Sequence[str], log: Path) -> int:
    with log.open("w") as output:
        try:
            return subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=FETCH_SECONDS,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired as error:
            raise ConnectError(
                f"Fetching the jars was given up after {FETCH_SECONDS:.0f} s (output: {log}). "
                "What was fetched is kept; start again to fetch the rest."
            ) from error


def _telling(output: str) -> list[str]:
    lines = [line.strip() for line in output.splitlines()]
    chosen = [line for line in lines if any(word in line for word in TELLING)]
    return list(dict.fromkeys(chosen or lines))[-8:]


def proxy_options(environment: Mapping[str, str]) -> Iterator[str]:
    """What Java calls the proxy settings that other programs take from the environment."""
    for scheme in ("http", "https"):
        name = f"{scheme}_proxy"
        proxy = urlsplit(environment.get(name) or environment.get(name.upper()) or "")
        if proxy.hostname:
            yield f"-D{scheme}.proxyHost={proxy.hostname}"
            yield f"-D{scheme}.proxyPort={proxy.port or 80}"
    direct = environment.get("no_proxy") or environment.get("NO_PROXY")
    if direct:
        hosts = [host.strip() for host in direct.split(",")]
        patterns = [f"*{host}" if host.startswith(".") else host for host in hosts]
        yield f"-Dhttp.nonProxyHosts={'|'.join(patterns)}"
