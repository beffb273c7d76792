"""Sets of jars whose every byte is pinned: found in the cache, or fetched once with Apache Ivy."""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from headrace.connect.errors import ConnectError
from headrace.jvm.cache import cache_folder, locked
from headrace.jvm.java import Java
from headrace.jvm.trust_store import trust_options

JAR_SETS = ("broker", "connect", "spark-kafka")
# A slow network takes minutes for 50 MB in some 200 requests; one that takes longer than this hangs.
FETCH_SECONDS = 900.0
RELEVANT = ("ERROR", "WARN", "Exception", "unresolved", "not found")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One jar by its Maven coordinates and the SHA-256 of its bytes."""

    organisation: str
    name: str
    revision: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The jar's name in a folder of jars."""
        return f"{self.name}-{self.revision}.jar"


def pins_of(jar_set: str) -> tuple[Pin, ...]:
    """The pins of one of JAR_SETS, in the order of their file."""
    return parsed(files("headrace.jvm").joinpath("pins", f"{jar_set}.txt").read_text())


def parsed(text: str) -> tuple[Pin, ...]:
    """The pins written in *text*."""
    pins: list[Pin] = []
    for line in text.splitlines():
        coordinates, sha256 = line.split()
        organisation, name, revision = coordinates.split(":")
        pins.append(Pin(organisation=organisation, name=name, revision=revision, sha256=sha256))
    return tuple(pins)


def digest_of(pins: Sequence[Pin]) -> str:
    """A short hash of exactly these jars, so that two versions of a set do not share a folder."""
    return hashlib.sha256("".join(pin.sha256 for pin in pins).encode()).hexdigest()[:8]


def faults(folder: Path, pins: Sequence[Pin]) -> Iterator[str]:
    """A sentence for each jar that is missing from *folder* or is not the pinned one."""
    for pin in pins:
        jar = folder / pin.file_name
        if not jar.is_file():
            yield f"{pin.file_name} is missing."
        elif sha256_of(jar) != pin.sha256:
            yield f"{pin.file_name} is not the pinned file: its SHA-256 is {sha256_of(jar)}."


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


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
    """An Ivy module that depends on exactly *pins* and not on their dependencies."""
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

    *cache* is Ivy's own folder, *options* are Java's. Raises ConnectError with the end of Ivy's output; the content of
    *folder* is then of no use.
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
        words = "\n".join(_relevant_lines(log.read_text(errors="replace")))
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
                f"Fetching the jars did not end within {FETCH_SECONDS:.0f} s (output: {log}). "
                "What was fetched is kept; start again to fetch the rest."
            ) from error


def _relevant_lines(output: str) -> list[str]:
    lines = [line.strip() for line in output.splitlines()]
    chosen = [line for line in lines if any(word in line for word in RELEVANT)]
    return list(dict.fromkeys(chosen or lines))[-8:]


def proxy_options(environment: Mapping[str, str]) -> Iterator[str]:
    """Java's options for the proxy settings that other programs read from the environment."""
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


def class_path(jar_set: str, *, java: Java) -> str:
    """The verified jars of *jar_set*, as Java's ``-cp`` takes them.

    ``broker`` and ``connect`` are whole programs; ``spark-kafka`` is Spark's own Kafka source, without what PySpark has.

    Every jar's SHA-256 is compared at each call, which takes about 0.1 s. A set that is not in the
    cache is fetched first: tens of seconds, and needs the network. Other processes that want jars
    wait meanwhile. Raises ConnectError with what to do.
    """
    pins = pins_of(jar_set)
    folder = cache_folder("jars") / f"{jar_set}-{digest_of(pins)}"
    with locked(cache_folder("jars") / "lock"):
        _complete(folder, pins, java=java)
    return os.pathsep.join(str(folder / pin.file_name) for pin in pins)


def _complete(folder: Path, pins: Sequence[Pin], *, java: Java) -> None:
    if not all((folder / pin.file_name).is_file() for pin in pins):
        log.info("Fetching %d jars, once; they are kept in %s", len(pins), folder)
        _fetch(folder, pins, java=java)
        return
    changed = next(faults(folder, pins), None)
    if changed:
        raise ConnectError(
            f"{changed} The file was changed or is damaged. "
            f"Remove the folder {folder} and start again: the jars are then fetched again."
        )


def _fetch(folder: Path, pins: Sequence[Pin], *, java: Java) -> None:
    """Fetch everything next to *folder*, verify it, then rename: *folder* is complete or does not exist."""
    try:
        _attempt(folder, pins, java=java, options=trust_options())
    except ConnectError as error:
        # The second attempt uses Java's own certificates, and an empty cache, in case the cache is damaged.
        log.warning("%s\nTrying once more.", error)
        shutil.rmtree(cache_folder("ivy"), ignore_errors=True)
        try:
            _attempt(folder, pins, java=java, options=())
        except ConnectError as again:
            raise ConnectError(
                f"{again}\nThe jars come from Maven's central repository. Check the network and the "
                "proxy's variables (https_proxy, SSL_CERT_FILE for its certificate), or name a file "
                "of Ivy settings with your own mirror in HEADRACE_IVY_SETTINGS, and start again."
            ) from again


def _attempt(folder: Path, pins: Sequence[Pin], *, java: Java, options: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as name:
        whole = Path(name) / "jars"
        whole.mkdir()
        retrieve(pins, whole, java=java, cache=cache_folder("ivy"), options=options)
        problems = list(faults(whole, pins))
        if problems:
            raise ConnectError(f"A fetched jar does not match its pin: {problems[0]}")
        shutil.rmtree(folder, ignore_errors=True)
        whole.replace(folder)
