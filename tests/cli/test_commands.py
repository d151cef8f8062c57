"""Help, completion, plug-ins, and the commands around taxonomies, snapshots and data sets."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from stream_hc import Taxonomy, __version__
from stream_hc.learners import LEARNERS, QUICK
from stream_hc.runtime.log import read_log
from tests.cli.support import ROOT, call, call_all, environment, on_terminal

pytestmark = pytest.mark.compiled

COMMANDS = (
    "run",
    "evaluate",
    "compare",
    "demo",
    "doctor",
    "taxonomy",
    "taxonomy draw",
    "taxonomy validate",
    "taxonomy convert",
    "snapshot",
    "snapshot inspect",
    "snapshot verify",
)


def test_help_fits_and_names_everything() -> None:
    top, version, *others = call_all(
        ["--help"], ["--version"], *([*command.split(), "--help"] for command in COMMANDS)
    )
    assert version.stdout.decode() == f"stream-hc {__version__}\n"
    for command, result in zip(COMMANDS, others, strict=True):
        text = result.stdout.decode()
        assert (result.returncode, result.stderr) == (0, b"")
        assert text.startswith(f"Usage: stream-hc {command} ")
        assert max(map(len, text.splitlines())) <= 80
        assert f"\n  {command.split()[0]} " in top.stdout.decode()
    assert "Exit codes: 0 fine; 1 a bug; 2 wrong usage; 3 bad input" in top.stdout.decode()
    assert "130" in others[0].stdout.decode()


def test_completion() -> None:
    script = call(_STREAM_HC_COMPLETE="source_bash")
    assert script.returncode == 0
    assert b"complete -o default -F _stream_hc_completion stream-hc" in script.stdout
    shown = call("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert shown.stdout == script.stdout.replace(b"\r", b"") or b"_stream_hc_completion" in shown.stdout

    def completed(words: str) -> list[str]:
        count = str(len(words.split(" ")) - 1)
        result = call(_STREAM_HC_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=count)
        return result.stdout.decode().split()

    assert completed("stream-hc ta") == ["taxonomy"]
    assert completed("stream-hc run --learner h-") == [name for name in LEARNERS if name.startswith("h-")]
    assert completed("stream-hc run --costs s") == ["sibling", "subtree"]


PLUGIN = '''
import typer

app = typer.Typer(help="Greet people.")
number = 3


@app.command()
def greet(name: str) -> None:
    """Greet somebody."""
    typer.echo("hello " + name)


@app.command()
def fail() -> None:
    """Fail."""
    raise KeyError("oops\\x1b[31m[red]")
'''


def test_commands_of_other_packages(tmp_path: Path) -> None:
    info = tmp_path / "fake-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fake\nVersion: 1.0\n")
    entries = ["hello = fake_plugin:app", "broken = no_such_module:app", "wrong = fake_plugin:number"]
    (info / "entry_points.txt").write_text(
        "\n".join(["[stream_hc.commands]", *entries, "run = fake_plugin:app"])
    )
    (tmp_path / "fake_plugin.py").write_text(PLUGIN)
    plugins = str(tmp_path)

    overview = call("--help", plugins=plugins)
    assert overview.returncode == 0
    assert b"\n  hello     Greet people.\n" in overview.stdout
    assert b"\n  run       Predict a stream" in overview.stdout
    assert b"  broken" not in overview.stdout
    warnings = overview.stderr.decode().splitlines()
    assert len(warnings) == 2
    assert warnings[0].startswith("warning: command 'broken' of fake left out: ModuleNotFoundError: ")
    assert warnings[1].endswith("fake_plugin:number is a int, not a typer.Typer")

    greeting = call("hello", "greet", "you", plugins=plugins)
    assert (greeting.returncode, greeting.stdout, greeting.stderr) == (0, b"hello you\n", b"")
    broken = call("broken", plugins=plugins)
    assert broken.returncode == 2
    assert broken.stderr.decode().splitlines()[1].startswith("error: no such command 'broken'")

    bug = call("hello", "fail", plugins=plugins)
    assert bug.returncode == 1
    # Python's repr of the message has escaped it once, and nothing raw is left.
    assert bug.stderr.decode() == (
        "error: this is a bug: KeyError: 'oops\\x1b[31m[red]' "
        "(run stream-hc --debug ... for the traceback and report it)\n"
    )
    for traced in (
        call("--debug", "hello", "fail", plugins=plugins),
        call("hello", "fail", plugins=plugins, STREAM_HC_DEBUG="1"),
    ):
        assert traced.returncode == 1
        assert traced.stderr.startswith(b"Traceback ")
        assert b"error: this is a bug: KeyError" in traced.stderr


def test_taxonomy_commands(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.tsv", tmp_path / "bad.tsv"
    good.write_text("sport\t\ntennis\tsport\ndoubles\ttennis\nweird \x1b[31m[red]\t\n")
    bad.write_bytes(
        b"sport\t\nsport\t\n\na\tb\tc\n\xff\t\ntennis\tgolf\nx\ty\ny\tx\nsport\ttennis\n\tsport\n"
    )
    drawn, fine, wrong, json_file = call_all(
        ("taxonomy", "draw", good, "--depth", "1"),
        ("taxonomy", "validate", good),
        ("taxonomy", "validate", bad),
        ("taxonomy", "convert", good, tmp_path / "good.json"),
    )
    assert drawn.stdout.decode() == "sport\n└── tennis … 1 more\nweird \\x1b[31m[red]\n"
    assert fine.returncode == 0
    assert fine.stdout.decode() == f"{good}: fine: a forest of 4 nodes, 2 roots, 2 leaves, 3 levels\n"
    assert wrong.returncode == 3
    problems = [line.removeprefix(str(bad)) for line in wrong.stdout.decode().splitlines()]
    assert problems == [
        ", lines 1, 2, 9: node 'sport' is listed 2 times as a root",
        ", lines 1, 2, 9: node 'sport' is listed as a root and under 'tennis'",
        ", line 4: expected child<TAB>parent, found 'a\\tb\\tc'",
        ", line 5: not UTF-8: save the file as UTF-8",
        ", line 6: node 'tennis' has the unknown parent 'golf'",
        ", line 7: the nodes form a cycle: 'x' -> 'y' -> 'x'",
        ", line 10: expected child<TAB>parent, found '\\tsport'",
    ]
    assert json_file.stderr.decode() == f"wrote {tmp_path / 'good.json'}: 4 nodes\n"
    assert Taxonomy.read(tmp_path / "good.json") == Taxonomy.read(good)


def test_evaluate_and_compare(tmp_path: Path) -> None:
    one, several, split = call_all(
        ("evaluate", "news:800:1:sudden", "-l", "node-pa", "--set", "C=0.5", "--delay", "50", "--json", "-"),
        (
            "compare",
            "news:800:1:sudden",
            "--window",
            "100",
            "--plot",
            tmp_path,
            "--json",
            tmp_path / "r.json",
        ),
        (
            "compare",
            "news",
            "--limit",
            "600",
            "--protocol",
            "two-thirds",
            "--markdown",
            "-l",
            "h-arow",
            "-l",
            "h-perceptron:judged_by=node,cold_start=paper",
        ),
    )
    report = json.loads(one.stdout)
    assert (report["protocol"], report["documents"], len(report["runs"])) == ("progressive", 800, 1)
    assert (report["runs"][0]["name"], report["runs"][0]["delay"]) == ("node-pa", 50)
    assert 0 < report["runs"][0]["h_loss"] < 2
    assert one.stderr == split.stderr == b""

    table = several.stdout.decode()
    assert table.startswith("news: progressive, 800 documents scored")
    assert all(f"\n {name} " in table for name in QUICK)
    assert max(map(len, table.splitlines())) <= 80
    assert "…" not in table
    assert {run["name"] for run in json.loads((tmp_path / "r.json").read_text())["runs"]} == set(QUICK)
    for name in ("running.png", "by-depth.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
        assert f"wrote {tmp_path / name}\n" in several.stderr.decode()

    assert split.stdout.startswith(b"| learner | zero-one |")
    assert b"\n| h-arow | " in split.stdout
    assert b"\n| h-perceptron:judged_by=node,cold_start=paper | " in split.stdout


def test_demo_and_what_it_suggests(tmp_path: Path) -> None:
    result = call("demo", "--documents", "300", cwd=tmp_path)
    shown, told = result.stdout.decode(), result.stderr.decode()
    assert result.returncode == 0
    assert "re-fit after 50 labelled documents: a fit to the window begins" in told
    assert "candidate after 100 labelled documents: hm3-1 is fitted and predicts beside the others" in told
    folder = tmp_path / "demo-output"
    made = "docs.jsonl job.toml predictions.jsonl rejects.jsonl report.html report.json report.png state"
    assert sorted(path.name for path in folder.iterdir()) == [*made.split(), "stream.jsonl", "taxonomy.tsv"]
    assert len((folder / "predictions.jsonl").read_bytes().splitlines()) == 300
    assert len((folder / "rejects.jsonl").read_bytes().splitlines()) == 7

    numbers, log = json.loads((folder / "report.json").read_text()), read_log(folder / "state" / "log.jsonl")
    assert numbers["events"] == msgspec.to_builtins(list(log.events))
    assert {"refit", "candidate"} <= {event.what for event in log.events}
    assert (
        log.standings[-1].documents < numbers["standing"]["documents"] == 300
    )  # the report has the end, too
    served = numbers["standing"]["served"]
    page = (folder / "report.html").read_text()
    for number in (f"{served['mean']:.3f}", f"{served['recent']:.3f}", f"{served['scored']:,}"):
        assert f">{number}<" in page or f": {number}<" in page
    assert f"{served['scored']:,}   {served['mean']:.4f}   {served['recent']:.4f}" in shown
    assert (folder / "report.png").read_bytes().startswith(b"\x89PNG")

    again = tmp_path / "again"
    again.mkdir()
    for name in ("job.toml", "stream.jsonl", "taxonomy.tsv"):
        (again / name).write_bytes((folder / name).read_bytes())
    same = call("run", "--config", again / "job.toml")
    assert same.returncode == 0
    for name in ("predictions.jsonl", "rejects.jsonl", "state/log.jsonl"):
        assert (again / name).read_bytes() == (folder / name).read_bytes()

    program = shlex.join([sys.executable, "-m", "stream_hc.cli"])
    suggested = [line.strip() for line in shown.splitlines() if line.startswith("  ") and program in line]
    how = {"shell": True, "cwd": tmp_path, "env": environment(), "capture_output": True}
    results = [subprocess.run(command, check=False, **how) for command in suggested]
    assert [result.returncode for result in results] == [0, 0, 0, 0]
    assert all(name in results[0].stdout.decode() for name in ("h-arow", "node-pa", "h-perceptron"))
    assert "(HAROW)" in results[1].stdout.decode() or "(NodePA)" in results[1].stdout.decode()
    assert b"asked for " in results[2].stderr
    assert b"promoted after " in results[3].stderr
    assert b"1000 documents, 1000 labelled, 0 rejected" in results[3].stderr
    assert len((folder / "predictions.jsonl").read_bytes().splitlines()) == 1300


def test_demo_on_a_terminal(tmp_path: Path) -> None:
    code, shown = on_terminal("demo", "--documents", "600", "--output", tmp_path / "demo", stdout_too=True)
    assert code == 0
    for seen in ("recent H-loss", "wait for labels", "re-fit under way", "What to try next"):
        assert seen in shown
    assert b"H-loss of the best single model" in (tmp_path / "demo" / "report.html").read_bytes()


def test_doctor(tmp_path: Path) -> None:
    healthy = call("doctor")
    lines = healthy.stdout.decode().splitlines()
    assert healthy.returncode == 0
    assert all(line.startswith(("ok ", "warning ")) for line in lines)
    for found in ("numba ", "GB of memory free", "kernels compile", "a snapshot is saved and loaded"):
        assert any(found in line for line in lines)
    (tmp_path / "msgspec.py").write_text("raise ImportError('broken on purpose')")
    sick = call("doctor", plugins=str(tmp_path))
    assert sick.returncode == 1
    assert b"problem  msgspec cannot be imported (broken on purpose): pip install msgspec" in sick.stdout
    assert b"Traceback" not in sick.stderr


def test_after_warmup_nothing_is_compiled_any_more(tmp_path: Path) -> None:
    """In a copy of the package that keeps no compiled kernel but those that the warm-up calls."""
    copied, demo = tmp_path / "stream_hc", tmp_path / "demo"
    run = ("run", demo / "docs.jsonl", "--taxonomy", demo / "taxonomy.tsv")
    # What is compiled already is taken along: all of it takes minutes. Others may be writing there.
    shutil.copytree(ROOT / "stream_hc", copied, ignore=shutil.ignore_patterns("*.pyc*", "*.tmp.*"))
    here = {"plugins": str(tmp_path), "NUMBA_CACHE_DIR": "", "NUMBA_DEBUG_CACHE": "1"}
    warmed = call("warmup", cwd=tmp_path, patience=800, **here)
    assert (warmed.returncode, warmed.stderr) == (0, b"")
    assert b"\nall kernels are compiled (" in warmed.stdout

    def kept() -> set[str]:
        return {str(path) for path in copied.rglob("*.nbc")}

    before = set(re.findall(r"data (?:loaded from|saved to) '(.+\.nbc)'", warmed.stdout.decode()))
    assert len(before) > 40
    for path in kept() - before:
        Path(path).unlink()
    for arguments in (
        ("demo", "--documents", "1000", "--output", demo),
        (*run, "--snapshot", tmp_path / "one.snap", "--output", tmp_path / "out.jsonl"),
        ("evaluate", demo, "--learner", "h-arow", "--protocol", "two-thirds"),
        ("doctor",),
    ):
        assert call(*arguments, cwd=tmp_path, **here).returncode == 0
        assert sorted(kept() - before) == []
