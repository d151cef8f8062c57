"""The commands in this process: every message and branch, without a second of imports for each."""

import builtins
import gc
import io
import json
import os
import signal
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import typer

from stream_hc import snapshot
from stream_hc.cli import checking, console, errors, inspecting, judging, main, plugins, showing
from stream_hc.cli.signals import Stopper
from stream_hc.datasets import make_news
from stream_hc.runtime.disk.lock import lock_folder

TREE = "sport\t\ntennis\tsport\npolitics\t\n"
DOCS = (
    '{"id": "1", "text": "a racket", "labels": ["tennis"]}\n'
    '{"id": "2", "text": "a vote", "labels": ["politics"]}\n'
    '{"id": "3", "text": "a racket"}\n'
)


class Inside:
    """Calls the command as the script does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capfd = capfd

    def __call__(self, *args: str | Path) -> tuple[int, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["stream-hc", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = self._capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return int(ended.value.code), shown.out, shown.err


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Inside]:
    monkeypatch.delenv("STREAM_HC_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    pace = gc.get_threshold()
    yield Inside(monkeypatch, capfd)
    gc.unfreeze()  # a stream has this process for itself; the tests after it do not
    gc.set_threshold(*pace)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tree.tsv").write_text(TREE)
    (tmp_path / "docs.jsonl").write_text(DOCS)
    return tmp_path


def test_run_and_go_on(inside: Inside, folder: Path) -> None:
    args = ("run", folder / "docs.jsonl", "-s", folder / "m.snap", "--set", "r=0.5", "--n-features", "512")
    code, out, err = inside(*args, "-t", folder / "tree.tsv", "--snapshot-every", "2")
    assert code == 0
    assert json.loads(out.splitlines()[2])["path_labels"] == ["sport", "tennis"]
    assert err.startswith("3 documents, 2 labelled, 0 rejected; H-loss 1.0000, zero-one 1.0000; ")
    code, out, err = inside(*args, "-l", "h-arow", "-o", folder / "out.jsonl", "--limit", "1")
    assert (code, out) == (0, "")
    assert "m.snap: h-arow, 2 documents learned\n1 documents, 1 labelled" in err
    assert '"scores":{"sport":' in (folder / "out.jsonl").read_text()
    assert snapshot.inspect(folder / "m.snap").extra["documents"] == 4


def test_one_model_file_for_one_learner(
    inside: Inside, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = ("run", folder / "docs.jsonl", "-s", folder / "m.snap", "-t", folder / "tree.tsv", "-q")
    for variable, value in (("MODEL_LEARNERS", "h-arow,node-pa"), ("REFIT_ENABLED", "true")):
        monkeypatch.setenv(f"STREAM_HC_{variable}", value)
        code, out, err = inside(*args)
        assert (code, out) == (2, "")
        assert "--snapshot keeps one learner" in err
        monkeypatch.delenv(f"STREAM_HC_{variable}")
    monkeypatch.setenv("STREAM_HC_STATE_FOLDER", str(folder / "state"))
    assert "choose one of them" in inside(*args)[2]
    monkeypatch.delenv("STREAM_HC_STATE_FOLDER")
    named = ("--set", "h-arow.r=0.5", "--set", "labels.changed=learn")
    assert [inside(*args, *named)[0] for _ in range(2)] == [0, 0]
    code, _, err = inside(*args, "--set", "h-arow.r=0.7")
    assert code == 4
    assert "holds h-arow with r=0.5, not 0.7" in err


def test_run_with_bad_lines(inside: Inside, folder: Path) -> None:
    (folder / "docs.jsonl").write_text("no json\n" * 12 + '{"id": "9", "text": "x"}\n' + "x" * 2**21)
    args = ("run", folder / "docs.jsonl", "-t", folder / "tree.tsv", "--n-features", "64")
    code, out, err = inside(*args)
    assert code == 5
    assert out.count("\n") == 1
    lines = err.splitlines()
    assert lines[0].startswith(f"{folder / 'docs.jsonl'}:1: not_json: JSON is malformed")
    assert lines[-2:][0].endswith("docs.jsonl: 3 more rejected lines not shown")
    assert lines[-1].startswith("1 documents, 0 labelled, 13 rejected; no losses: no labels; ")
    assert inside(*args, "--rejects", folder / "rejects")[0] == 0
    rejects = [json.loads(line) for line in (folder / "rejects").read_text().splitlines()]
    assert [reject["truncated"] for reject in rejects] == [False] * 12 + [True]


def test_wrong_usage(inside: Inside, folder: Path) -> None:
    docs, tree = folder / "docs.jsonl", ("-t", folder / "tree.tsv")
    expected = {
        ("run", docs, "--limit", "x"): "--limit",
        ("run", docs): "--taxonomy is missing",
        ("run", docs, *tree, "--learner", "svm"): "there is no learner 'svm': choose one of h-perceptron",
        ("run", docs, *tree, "--set", "C=1"): "--set C=1: h-arow takes NAME=VALUE for r, cold_start",
        ("run", docs, *tree, "--set", "r"): "--set r: h-arow takes",
        ("run", docs, *tree, "--set", "r=-1"): "h-arow: r must be positive",
        ("run", docs, *tree, "--set", "r=big"): "h-arow: ",
        ("run", docs, *tree, "--set", "cold_start=none"): "h-arow: unknown cold_start None",
        ("run", docs, *tree, "--costs", "none"): "there are no costs 'none'",
        ("run", docs, *tree, "--snapshot-every", "5"): "--snapshot-every needs --snapshot",
        ("run", docs, *tree, "-o", docs): "INPUT and --output are the same file",
        ("run", docs, *tree, "--rejects", "-"): "--rejects must be a file",
        ("evaluate", "news:5:0:sudden:1"): "news:5:0:sudden:1: expected news[:DOCUMENTS",
        ("evaluate", "news", "--protocol", "best"): "there is no protocol 'best'",
        ("evaluate", "news", "--protocol", "two-thirds", "--delay", "5"): "--delay needs --protocol",
        ("compare", "news", "-l", "h-arow", "-l", "h-arow"): "the same --learner twice",
        ("demo", "--output", docs): "not a folder",
        ("demo", "--output", folder): "has files that are not of a demo",
        ("taxonomy", "paint"): "no such command 'paint'",
    }
    for args, message in expected.items():
        code, out, err = inside(*args)
        assert (code, out, err.count("\n")) == (2, "", 1), args
        assert err.startswith("error: ")
        assert message in err
    assert inside()[0] == inside("taxonomy")[0] == 2


def test_bad_input(inside: Inside, folder: Path) -> None:
    (folder / "cycle.tsv").write_text("a\tb\nb\ta\n")
    (folder / "empty.tsv").write_text("\n")
    (folder / "own").mkdir()
    (folder / "own" / "taxonomy.tsv").write_text(TREE)
    (folder / "own" / "docs.jsonl").write_text(
        DOCS.splitlines()[0].replace("}", ', "split": "train"}')  # and nothing else to test on
    )
    docs, tree = folder / "docs.jsonl", ("-t", folder / "tree.tsv")
    expected = {
        ("run", docs, "-t", folder / "cycle.tsv"): "cycle.tsv: the nodes form a cycle",
        ("run", docs, "-t", folder / "empty.tsv"): "empty.tsv: the taxonomy has no nodes",
        ("run", docs, *tree, "-o", folder / "no" / "out"): "out: the folder does not exist: make it first",
        ("run", docs, *tree, "-o", folder): "Is a directory",
        ("evaluate", "news:0"): "n is 0",
        ("evaluate", "news:200", "--protocol", "own"): "has no split of its own",
        ("evaluate", folder / "own", "--protocol", "train-rest"): "to train on and 0 to test on",
        ("taxonomy", "draw", folder / "none.tsv"): "none.tsv: cannot read the taxonomy",
        ("taxonomy", "validate", folder / "none.tsv"): "none.tsv: cannot read the taxonomy",
        ("taxonomy", "convert", folder / "tree.tsv", folder / "no" / "t.json"): "the folder does not exist",
    }
    for args, message in expected.items():
        code, out, err = inside(*args)
        assert (code, out, err.count("\n")) == (3, "", 1), (args, err)
        assert message in err


def test_folder_that_cannot_be_written(inside: Inside, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    code, _, err = inside("run", folder / "docs.jsonl", "-t", folder / "tree.tsv", "-o", folder / "out")
    assert (code, "the folder is not writable" in err) == (3, True)


def test_snapshots_that_do_not_fit(inside: Inside, folder: Path) -> None:
    docs, good = folder / "docs.jsonl", ("-s", folder / "good.snap")
    (folder / "other.tsv").write_text("sport\t\n")
    assert inside("run", docs, *good, "-t", folder / "tree.tsv", "-q", "-o", folder / "out")[0] == 0
    snapshot.save(folder / "half.snap", {"learner": snapshot.load(folder / "good.snap")["learner"]})
    expected = {
        ("run", docs, "-s", folder / "tree.tsv"): "tree.tsv: not a stream_hc snapshot",
        ("run", docs, "-s", folder / "half.snap"): "half.snap: not the snapshot of a filer",
        ("run", docs, *good, "-t", folder / "other.tsv"): "another taxonomy (3 nodes) than ",
        ("run", docs, *good, "-l", "node-pa"): "holds h-arow, not node-pa: leave out --learner",
        ("run", docs, *good, "--set", "r=3"): "holds h-arow with r=0.1, not 3: use another --snapshot",
        ("run", docs, *good, "--n-features", "32"): "with n_features=262144, not 32",
        ("snapshot", "inspect", folder / "none.snap"): "none.snap: cannot read: No such file",
    }
    for args, message in expected.items():
        code, out, err = inside(*args)
        assert (code, out, err.count("\n")) == (4, "", 1), (args, err)
        assert message in err
    code, out, err = inside("snapshot", "inspect", folder / "good.snap")
    assert (code, err) == (0, "")
    assert "learner: HAROW" in out
    assert json.loads(inside("snapshot", "inspect", folder / "good.snap", "--json")[1])["single"] is False
    assert inside("snapshot", "verify", folder / "good.snap")[1].count("\n") == 1


def test_taxonomy(inside: Inside, folder: Path) -> None:
    assert inside("taxonomy", "draw", folder / "tree.tsv") == (0, "sport\n└── tennis\npolitics\n", "")
    assert inside("taxonomy", "validate", folder / "tree.tsv")[0] == 0
    assert inside("taxonomy", "convert", folder / "tree.tsv", folder / "t.json")[0] == 0
    assert inside("taxonomy", "validate", folder / "t.json")[0] == 0
    assert inside("taxonomy", "convert", folder / "t.json", folder / "back.tsv")[0] == 0
    assert (folder / "back.tsv").read_text() == "sport\t\npolitics\t\ntennis\tsport\n"
    (folder / "dag.tsv").write_text("a\t\nb\t\nc\ta\nc\tb\n")
    assert "a DAG of 3 nodes" in inside("taxonomy", "validate", folder / "dag.tsv")[1]
    problems = {
        "bad.json": ('{"nodes": [{"name": "a", "parents": ["b"]}]}', ": node 'a' has the unknown parent 'b'"),
        "worse.json": ("{", ": expected a taxonomy as "),
        "empty.tsv": ("", ": the taxonomy has no nodes"),
        "name.tsv": ("a\t \n", ", line 1: edge 1 ('a', ' '): a name must not be empty"),
        "quote.tsv": ("it's\tx\na\t\n", """, line 1: node "it's" has the unknown parent 'x'"""),
        "many.tsv": ("a\t\n" * 5, ", lines 1, 2, 3 and 2 more: node 'a' is listed 5 times as a root"),
        "two.tsv": ("a\t\nb\t\nc\ta\nc\tb\nc\tb\n", ", lines 4, 5: node 'c' is listed 2 times under 'b'"),
        "bytes.tsv": ("a\t\x1b[31m\n", ", line 1: node 'a' has the unknown parent '\\x1b[31m'"),
    }
    for name, (content, problem) in problems.items():
        (folder / name).write_text(content)
        code, out, err = inside("taxonomy", "validate", folder / name)
        assert (code, err) == (3, "")
        assert out.startswith(f"{folder / name}{problem}")


class Interrupted(Stopper):
    """Somebody has pressed Ctrl-C before the first document."""

    def __init__(self) -> None:
        super().__init__()
        self.signal = signal.SIGINT


def test_evaluate_compare_and_demo(inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = ("--n-features", "512", "--window", "20")
    code, out, err = inside(
        "evaluate", "news:40:0:sudden", *few, "--json", tmp_path / "r", "--plot", tmp_path
    )
    assert (code, "h-arow" in out) == (0, True)
    assert err.count("wrote ") == 3
    assert (tmp_path / "running.png").exists()
    assert inside("compare", "news:40", *few, "--json", "-", "-l", "perceptron")[1].startswith("{")
    assert inside("compare", "news:40", *few, "--markdown", "-l", "perceptron")[1].startswith("| learner")
    make_news(30).write(tmp_path / "data")
    assert inside("compare", tmp_path / "data", *few, "--limit", "20", "-l", "node-pa")[0] == 0
    monkeypatch.setattr(judging, "can_plot", lambda: False)
    monkeypatch.setattr(showing, "can_plot", lambda: False)
    assert "--plot needs matplotlib" in inside("evaluate", "news:40", "--plot", tmp_path)[2]
    code, out, err = inside("demo", "--documents", "100", "-o", tmp_path / "demo")
    assert (code, err.splitlines()[-1]) == (
        0,
        'no picture: pip install "stream_hc[plot]" and run the demo again',
    )
    assert out.count(" stream-hc ") == 4
    assert f"The report: {tmp_path / 'demo' / 'report.html'} " in out
    predicted = (tmp_path / "demo" / "predictions.jsonl").read_bytes()
    assert inside("demo", "--documents", "100", "-o", tmp_path / "demo", "--fast")[0] == 0
    assert (tmp_path / "demo" / "predictions.jsonl").read_bytes() == predicted
    monkeypatch.setattr(showing, "Stopper", Interrupted)
    code, out, err = inside("demo", "--documents", "100", "-o", tmp_path / "demo")
    assert (code, "stopped: run the demo again" in err, "The report" in out) == (130, True, False)
    lock = lock_folder(str(tmp_path / "demo" / "state"))
    assert "in use by the job with process id" in inside("demo", "-o", tmp_path / "demo")[2]
    os.close(lock)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "docs.jsonl").write_text("precious")
    assert inside("demo", "-o", tmp_path / "mine")[0] == 2
    assert (tmp_path / "mine" / "docs.jsonl").read_text() == "precious"


def test_doctor(inside: Inside, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, out, _ = inside("doctor")
    assert (code, "a snapshot is saved and loaded" in out) == (0, True)
    monkeypatch.setattr(checking, "PACKAGES", ("no_such_package",))
    monkeypatch.setattr(checking, "EXTRAS", {"no_such_extra": ("plot", "plots")})
    monkeypatch.setattr(checking, "LEAST_DISK", 10**30)
    monkeypatch.setattr(checking, "_free_memory", lambda: None)
    monkeypatch.setattr(checking, "_self_test", lambda: 1 / 0)
    checking._self_test.__name__ = "_self_test"
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    code, out, _ = inside("doctor")
    assert code == 1
    for line in (
        "problem  no_such_package cannot be imported",
        'warning  no no_such_extra, so no plots: pip install "stream_hc[plot]"',
        "warning  free memory is not known",
        "GB of disk free here: snapshots may not fit",
        "warning  NUMBA_DISABLE_JIT is set",
        "problem  self_test: ZeroDivisionError: ",
    ):
        assert line in out


def test_bugs_and_other_ends(inside: Inside, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    args = ("taxonomy", "draw", folder / "tree.tsv")

    def raising(error: BaseException) -> None:
        def fail(path: str) -> None:
            raise error

        monkeypatch.setattr("stream_hc.cli.making.read_taxonomy", fail)

    raising(KeyError("x\x1b"))
    code, _, err = inside(*args)
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith("error: this is a bug: KeyError: 'x\\x1b' (run stream-hc --debug")
    code, _, err = inside("--debug", *args)
    assert code == 1
    assert err.startswith("Traceback ")
    monkeypatch.delenv("STREAM_HC_DEBUG")
    raising(MemoryError("no room"))
    assert inside(*args)[::2] == (
        1,
        "error: out of memory: try fewer documents or a smaller --n-features (no room)\n",
    )
    raising(PermissionError(13, "Permission denied", "f"))
    assert inside(*args)[::2] == (3, "error: f: Permission denied\n")
    raising(KeyboardInterrupt())
    assert inside(*args) == (130, "", "")
    interrupted = SystemError("a kernel returned a result with an exception set")
    interrupted.__cause__ = KeyboardInterrupt()
    raising(interrupted)
    assert inside(*args) == (130, "", "")
    raising(typer.Abort())
    assert inside(*args) == (130, "", "")
    assert inside("--version")[0] == 0


def test_plugins(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    app = typer.Typer()

    @app.command()
    def hello() -> str:
        """Say something."""
        return "nobody sees this"

    monkeypatch.setattr(builtins, "plugin_app", app, raising=False)
    entries = {
        "say": EntryPoint("say", "builtins:plugin_app", plugins.GROUP),
        "odd": EntryPoint("odd", "builtins:len", plugins.GROUP),
    }
    monkeypatch.setattr(plugins, "_entry_points", lambda: entries)
    assert inside("say")[0] == 0
    code, out, err = inside("--help")
    assert (code, "\n  say       Say something.\n" in out) == (0, True)
    assert err.startswith("warning: command 'odd' left out: TypeError: builtins:len is a builtin")


def test_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(
        console, "errors", lambda: console.Console(file=screen, force_terminal=True, width=80)
    )
    with console.progress_bar("quick", 10, shown=True, after=100) as update:
        update(5, "half")
    assert screen.getvalue().strip() == ""
    with console.progress_bar("slow [red]", 10, shown=True) as update:
        update(5, "[bold]half")
    assert "slow [red]" in screen.getvalue()
    assert "[bold]half" in screen.getvalue()
    with console.progress_bar("hidden", 10, shown=False) as update:
        update(5, "half")
    assert "hidden" not in screen.getvalue()


def test_sizes_and_odd_numbers() -> None:
    assert inspecting.size(10**18) == "1000000.0 TB"
    assert inspecting._plain({"a": (float("nan"), float("-inf"), 1.5)}) == {"a": ["nan", "-inf", 1.5]}
    assert inspecting._short("x" * 70).endswith("… (70 characters)")
    assert console.clean("a\u202eb\ud800") == "a\\u202eb\\ud800"
    assert {code.value for code in errors.Code} == {0, 1, 2, 3, 4, 5, 6, 7, 8, 130}


def test_a_second_signal_interrupts() -> None:
    with Stopper() as stopper:
        stopper._remember(2, None)
        assert stopper.wait(0) is False
        with pytest.raises(KeyboardInterrupt):
            stopper._remember(2, None)
