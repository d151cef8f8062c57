"""The checks of `stream-hc doctor`. Nothing heavy is imported on top: a broken package is a finding here."""

import importlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import stream_hc
from stream_hc.cli.console import clean
from stream_hc.cli.errors import Code

__all__ = ["Finding", "examine"]

PACKAGES = ("numpy", "scipy", "numba", "river", "msgspec", "typer", "rich")
EXTRAS = {"matplotlib": ("plot", "plots"), "sklearn": ("compare", "comparisons with scikit-learn")}
LEAST_MEMORY, LEAST_DISK = 10**9, 10**9


class Finding(NamedTuple):
    """One line of the report; `verdict` is ok, warning or problem."""

    verdict: str
    text: str


def examine(echo: Callable[[str], None]) -> int:
    """Report every finding as soon as it is there, and return the exit code."""
    worst = Code.FINE
    for check in (_versions, _extras, _machine, _kernels, _self_test):
        try:
            for finding in check():
                echo(clean(f"{finding.verdict:8} {finding.text}"))
                worst = Code.BUG if finding.verdict == "problem" else worst
        except Exception as error:  # a check that fails is what this command is for
            cause = f"{check.__name__[1:]}: {type(error).__name__}: {error}"
            echo(clean(f"{'problem':8} {cause}: install stream_hc again"))
            worst = Code.BUG
    return worst


def _versions() -> Iterator[Finding]:
    fresh = sys.version_info >= (3, 11)
    python = f"python {platform.python_version()}"
    yield Finding("ok", python) if fresh else Finding("problem", f"{python}: install Python 3.11 or newer")
    yield Finding("ok", f"stream_hc {stream_hc.__version__}")
    for name in PACKAGES:
        try:
            importlib.import_module(name)
            yield Finding("ok", f"{name} {metadata.version(name)}")
        except ImportError as error:
            yield Finding("problem", f"{name} cannot be imported ({error}): pip install {name}")


def _extras() -> Iterator[Finding]:
    for name, (extra, purpose) in EXTRAS.items():
        if find_spec(name) is not None:
            yield Finding("ok", f"{name}, for {purpose}")
        else:
            yield Finding("warning", f'no {name}, so no {purpose}: pip install "stream_hc[{extra}]"')


def _machine() -> Iterator[Finding]:
    yield Finding("ok", f"{_cpus()} CPUs, {platform.machine()}")
    memory = _free_memory()
    if memory is None:
        yield Finding("warning", "free memory is not known on this system")
    else:
        text = f"{memory / 1e9:.1f} GB of memory free"
        yield _enough(memory, LEAST_MEMORY, text, "a large taxonomy may need more")
    disk = shutil.disk_usage(Path.cwd()).free
    yield _enough(disk, LEAST_DISK, f"{disk / 1e9:.1f} GB of disk free here", "snapshots may not fit")


def _enough(amount: int, least: int, text: str, remedy: str) -> Finding:
    return Finding("ok", text) if amount >= least else Finding("warning", f"{text}: {remedy}")


def _cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _free_memory() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _kernels() -> Iterator[Finding]:
    from stream_hc.kernels import labels  # noqa: PLC0415

    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        yield Finding("warning", "NUMBA_DISABLE_JIT is set: everything is hundreds of times slower: unset it")
        return
    folder = Path(labels.close_rows.stats.cache_path or ".")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
        yield Finding("ok", "numba keeps compiled kernels")
    except OSError:
        remedy = "set NUMBA_CACHE_DIR to a folder that can be written"
        yield Finding("warning", f"{folder} is not writable, every start compiles anew: {remedy}")


def _self_test() -> Iterator[Finding]:
    from stream_hc.cli.making import make_learner  # noqa: PLC0415
    from stream_hc.runtime import Document, Filer  # noqa: PLC0415
    from stream_hc.snapshot import dump_bytes, load, save  # noqa: PLC0415
    from stream_hc.taxonomy import Taxonomy  # noqa: PLC0415

    tree = Taxonomy([("sport", None), ("tennis", "sport"), ("politics", None)])
    filer = Filer(tree, make_learner("h-arow", tree, 1024))
    lessons = [Document("1", "a racket", labels=["tennis"]), Document("2", "a vote", labels=["politics"])]
    filer.file(lessons * 5)
    answers = filer.file([Document("3", "racket"), Document("4", "vote")]).outcomes
    found = [getattr(answer, "path_labels", None) for answer in answers]
    if found == [["sport", "tennis"], ["politics"]]:
        yield Finding("ok", "kernels compile, and a toy stream is learned")
    else:
        yield Finding(
            "problem", f"a toy stream was learned wrongly ({found}): install stream_hc and numba again"
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "toy.snap"
        save(path, filer.parts())
        same = dump_bytes(load(path)) == path.read_bytes()
    problem = Finding("problem", "a snapshot did not come back as it was saved: check disk and memory")
    yield Finding("ok", "a snapshot is saved and loaded") if same else problem
