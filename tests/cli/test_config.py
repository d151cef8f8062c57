"""`stream-hc config`: tables, JSON, problems, a new file; and the page that lists all keys."""

import importlib.util
import json
import os
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from stream_hc.cli.configuring import assignments, template
from stream_hc.runtime.config import KEYS, TABLES, Config, file_problems, load_config
from tests.cli.support import ROOT, call, on_terminal
from tests.cli.test_inside import Inside

TREE = "sport\t\ntennis\tsport\n"
JOB = """\
[stream]
documents = "docs.jsonl"
output = "out.jsonl"

[model]
taxonomy = "tree.tsv"
learners = ["h-arow", "node-pa"]

[model.settings.h-arow]
r = 0.5
"""


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Inside:
    for name in [name for name in os.environ if name.startswith("STREAM_HC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")
    return Inside(monkeypatch, capfd)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "tree.tsv").write_text(TREE)
    (tmp_path / "docs.jsonl").write_text("")
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path / "job.toml"


def rows(table: str) -> dict[str, tuple[str, str]]:
    """Return a table as key to value and origin; what was folded is put together again."""
    found: dict[str, tuple[str, str]] = {}
    name = ""
    for line in table.splitlines():
        if line.startswith("│"):
            key, value, origin = (cell.strip() for cell in line.strip("│").split("│"))
            name = key or name
            before = found.get(name, ("", ""))
            found[name] = (before[0] + value, before[1] + origin)
    return found


def test_every_value_and_its_origin(
    inside: Inside, job: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STREAM_HC_REFIT_EVERY", "none")
    sets = ("--set", "refit.window=7000", "--set", "h-arow.cold_start=paper")
    code, table, err = inside("config", "check", "job.toml", *sets)
    assert (code, err) == (0, "")
    assert max(map(len, table.splitlines())) <= 80
    shown = rows(table)
    assert set(shown) == {*KEYS, "model.settings.h-arow.r", "model.settings.h-arow.cold_start"} - {
        "model.settings"
    }
    assert shown["model.learners"] == ("h-arow, node-pa", "job.toml, line 7")
    assert shown["model.settings.h-arow.r"] == ("0.5", "job.toml, line 10")
    assert shown["model.settings.h-arow.cold_start"] == ("paper", "--set h-arow.cold_start")
    assert shown["refit.every"] == ("none", "STREAM_HC_REFIT_EVERY")
    assert shown["refit.window"] == ("7000", "--set refit.window")
    assert shown["refit.warm"] == ("true", "default")

    code, out, err = inside("config", "show", "job.toml", *sets, "--json")
    assert (code, err) == (0, "")
    values = json.loads(out)
    assert values["refit.every"] == {"value": None, "origin": "STREAM_HC_REFIT_EVERY"}
    assert values["model.settings"]["value"] == {"h-arow": {"r": 0.5, "cold_start": "paper"}}
    assert set(KEYS) < set(values)


def test_long_names_stay_within_80_columns(inside: Inside, tmp_path: Path) -> None:
    deep = tmp_path / ("long" * 20)
    deep.mkdir()
    text = f'[model]\nlearners = ["approx-h-bayes"]\ntaxonomy = "{"x" * 100}\\u001b[31m"\n'
    (deep / "job.toml").write_text(text + "[model.settings.approx-h-bayes]\ncold_start = 'paper'\n")
    code, table, _ = inside("config", "show", deep / "job.toml")
    assert code == 0
    assert max(map(len, table.splitlines())) <= 80
    assert "\x1b" not in table
    assert f"{'x' * 100}\\x1b[31m" in "".join(value for value, _ in rows(table).values())


def test_problems_are_lines_on_standard_error(inside: Inside, job: Path) -> None:
    job.write_text('[refit]\nwindw = 5\n[stream]\nlimit = 0\noutput = "a\\u001bb"\nrejects = "a\\u001bb"\n')
    code, out, err = inside("config", "check", job)
    assert (code, out) == (3, "")
    assert err.splitlines() == [
        f"error: {job}, line 2: unknown key refit.windw: did you mean refit.window?",
        f'error: {job}, line 4: stream.limit is 0: expected a whole number from 1 to 10^15, or "none"',
        f"error: {job}, line 6: stream.rejects is the same file as stream.output, "
        f"'{job.parent}/a\\x1bb': name another",
    ]
    code, out, err = inside("config", "show", job.parent / "none.toml", "--json")
    assert (code, out) == (3, "")
    assert err == f"error: {job.parent}/none.toml: cannot read: No such file or directory\n"


def test_check_looks_at_the_files(inside: Inside, job: Path) -> None:
    (job.parent / "docs.jsonl").unlink()
    (job.parent / "tree.tsv").write_text("a\tb\nb\ta\n")
    code, out, err = inside("config", "check", job, "--json")
    assert code == 3
    assert json.loads(out)["stream.output"]["value"] == str(job.parent / "out.jsonl")
    documents, taxonomy = err.splitlines()
    place = f"error: {job}, line"
    assert documents == f"{place} 2: stream.documents: {job.parent}/docs.jsonl: the file does not exist"
    assert taxonomy.startswith(f"{place} 6: model.taxonomy: {job.parent}/tree.tsv: the nodes form a cycle")
    assert inside("config", "show", job)[0] == 0


def test_wrong_usage(inside: Inside, job: Path) -> None:
    for typed in ("refit.window", "window=5", "=5"):
        code, out, err = inside("config", "check", job, "--set", typed)
        assert (code, out) == (2, "")
        assert err.startswith(f"error: --set {typed.partition('=')[0]}: expected KEY=VALUE, such as ")
    assert inside("config", "check", job, "--set", "broker.password=tulip")[2] == (
        "error: --set broker.password: unknown key broker.password: "
        "the tables are stream, model, labels, refit, judge, state, http, kafka\n"
    )
    assert assignments(["stream.output=a=b", "stream.output=c=d"]) == {"stream.output": "c=d"}


def test_a_new_file_has_every_key_and_changes_nothing(
    inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = inside("config", "init")
    assert (code, out) == (0, "")
    assert err == "wrote job.toml: change it, then try stream-hc config check job.toml\n"
    written = Path("job.toml").read_text(encoding="utf-8")
    assert written == template() == inside("config", "init", "-")[1]
    assert max(map(len, written.splitlines())) <= 100
    assert tomllib.loads(written) == {table: {} for table in TABLES}
    assert load_config("job.toml", {}, {}).config == Config()

    every = re.sub(r"^#(?=\w+ = )", "", written, flags=re.MULTILINE)
    Path("every.toml").write_text(every, encoding="utf-8")
    found = load_config("every.toml", {}, {})
    assert found.config == Config()
    given = {name for name, origin in found.origin.items() if origin.startswith("every.toml, line ")}
    assert given == set(KEYS) - {"model.settings"}  # an empty table has no value to take
    one_line = " ".join(line.removeprefix("# ") for line in written.splitlines())
    assert all(key.meaning in one_line for key in KEYS.values())


def test_a_file_is_not_overwritten(inside: Inside, job: Path) -> None:
    code, out, err = inside("config", "init", job)
    assert (code, out, err) == (2, "", f"error: {job}: exists already: choose another name\n")
    assert job.read_text() == JOB
    code, _, err = inside("config", "init", job.parent / "no" / "job.toml")
    assert (code, err) == (3, f"error: {job.parent}/no/job.toml: No such file or directory\n")


@pytest.fixture
def page() -> ModuleType:
    spec = importlib.util.spec_from_file_location("configuration", ROOT / "docs" / "configuration.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(page: ModuleType) -> None:
    written = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert written == page.page(), "run: python docs/configuration.py"


def test_the_example_of_the_page_is_sound(page: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(page.EXAMPLE)
    (tmp_path / "taxonomy.tsv").write_text(TREE)
    found = load_config(str(tmp_path / "job.toml"), {}, {})
    assert file_problems(found) == []
    assert found.config.refit.seconds == 600.0
    assert f"```toml\n{page.EXAMPLE}```" in page.page()


@pytest.mark.compiled
def test_as_users_do(job: Path) -> None:
    found = call("config", "check", "job.toml", cwd=job.parent, STREAM_HC_REFIT_WINDOW="9000")
    assert (found.returncode, found.stderr) == (0, b"")
    assert rows(found.stdout.decode())["refit.window"] == ("9000", "STREAM_HC_REFIT_WINDOW")
    code, shown = on_terminal("config", "show", job, stdout_too=True)
    assert code == 0
    assert re.search(r"\x1b\[1;32m *h-arow, node-pa", shown)  # what was given stands out
    assert re.search(r"\x1b\[2m *5000", shown)
