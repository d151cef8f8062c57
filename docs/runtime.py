"""Write `runtime.md` and its picture: `python docs/runtime.py` (needs the extra `plot`).

The real set comes from the folder that the environment variable `STREAM_HC_DATA` names, `../shared/data`
beside the checkout by default.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from stream_hc.datasets import Dataset, load
from stream_hc.runtime.events import Event, Standing
from stream_hc.runtime.log import read_log
from stream_hc.runtime.report import plot_run, sentence

ROOT = Path(__file__).resolve().parent.parent
DELAY = 500
LEARNERS = ("h-arow", "node-pa", "h-perceptron", "perceptron")
MOST_BEHIND = 1.02  # the served loss by that of the best learner
OPTIONS = [
    *(part for name in LEARNERS for part in ("--learner", name)),
    *("--refit", "--set", "refit.in_step=true", "--set", "refit.window=6000"),
]
TEMPLATE = Path(__file__).with_name("runtime.in.md")


def main() -> None:
    """Run the stream and write the page; exit with 1 if what was served is too far behind."""
    folder = Path(os.environ.get("STREAM_HC_DATA", ROOT.parent / "shared" / "data")) / "arxiv_2025"
    if not folder.is_dir():
        sys.exit(f"error: {folder} is missing: set STREAM_HC_DATA")
    data = load(folder)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        write_stream(data, work / "stream.jsonl")
        data.taxonomy.write(work / "taxonomy.tsv")
        command = ["run", "stream.jsonl", "--taxonomy", "taxonomy.tsv", *OPTIONS]
        command += ["--output", "predictions.jsonl", "--state", "state"]
        subprocess.run([sys.executable, "-m", "stream_hc.cli", *command], cwd=work, check=True)
        log = read_log(work / "state" / "log.jsonl")
        plot_run(log, work / "runtime.png")
        shutil.copy(work / "runtime.png", ROOT / "docs" / "runtime.png")
    last = log.standings[-1]
    best = min(LEARNERS, key=lambda name: last.scores[name].mean)
    behind = last.served.mean / last.scores[best].mean
    page = TEMPLATE.read_text(encoding="utf-8").format(
        n=f"{last.documents:,}",
        labelled=f"{last.labelled:,}",
        delay=DELAY,
        command="stream-hc " + " ".join(command),
        table=table(last),
        best=best,
        behind=f"{100 * (behind - 1):+.2f} %",
        events=events(log.events),
    )
    (ROOT / "docs" / "runtime.md").write_text(page, encoding="utf-8")
    sys.exit(0 if behind <= MOST_BEHIND else f"error: served is {behind:.4f} × the best learner")


def write_stream(data: Dataset, path: Path) -> None:
    """Write documents without labels, and each label so many documents later."""
    with path.open("wb") as stream:
        for row in range(len(data)):
            stream.write(msgspec.json.encode({"id": data.ids[row], "text": data.documents[row]}) + b"\n")
            if row >= DELAY:
                label = {"id": data.ids[row - DELAY], "labels": sorted(data.labels[row - DELAY])}
                stream.write(msgspec.json.encode(label) + b"\n")


def table(last: Standing) -> str:
    """Return the losses as a table, best first."""
    learners = sorted(LEARNERS, key=lambda name: last.scores[name].mean)
    rows = [("**served**", last.served), *((name, last.scores[name]) for name in learners)]
    lines = [f"| {name} | {score.scored:,} | {score.mean:.4f} |" for name, score in rows]
    return "\n".join(["| | labelled documents | mean H-loss |", "|---|---:|---:|", *lines])


def events(found: tuple[Event, ...]) -> str:
    """Return what happened as a list, without the fits that came to nothing."""
    told = [event for event in found if event.what in ("drift", "swap", "rollback", "refit_failed")]
    fits = sum(event.what == "candidate" for event in found)
    lines = [f"- after {event.labelled:,} labelled documents: {sentence(event)}" for event in told]
    return "\n".join([*lines, f"- H-M³ was fitted {fits} times"])


if __name__ == "__main__":
    main()
