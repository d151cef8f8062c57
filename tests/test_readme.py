"""The README tells the truth: its examples run, its table is what the command prints."""

import doctest
import importlib.util
import json
import re
import subprocess
import sys

import pytest

from stream_hc.datasets import make_news
from tests.cli.support import environment
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text()


@pytest.mark.compiled
def test_python_examples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(
        str(ROOT / "README.md"), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert result.failed == 0
    assert result.attempted >= 15


def losses_of(table):
    """The table as {learner: loss columns}, without the speed, which differs from machine to machine."""
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {row[0]: [cell.strip("*") for cell in row[1:-1]] for row in rows[1:]}


@pytest.mark.compiled
def test_the_table_is_what_the_command_prints():
    spec = importlib.util.spec_from_file_location("renew", ROOT / "docs" / "renew.py")
    renew = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(renew)
    printed = renew.TABLE.search(README)[0]
    assert "stream-hc compare news:10000:0:sudden --delay 200 --markdown" in printed
    expected = losses_of(renew.readme_comparison().to_markdown())
    assert len(expected) == 4
    assert losses_of(printed) == expected


def test_links_lead_somewhere():
    targets = re.findall(r"\]\((?!http)([^)#]+)", README)
    assert len(targets) > 5
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_every_make_target_named_exists():
    documents = README + (ROOT / "CONTRIBUTING.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"^make (\w+)", documents, re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.compiled
def test_shell_examples(tmp_path):
    blocks = re.findall(r"```bash\n(.*?)```", README, re.DOTALL)
    joined = (block.replace("\\\n", " ").splitlines() for block in blocks)
    # Those on topics need a broker: tests/kafka tries them.
    commands = [line for lines in joined for line in lines if "stream-hc" in line and " kafka " not in line]
    assert len(commands) >= 7
    news = make_news(200)
    news.write(tmp_path)
    labels = (
        {"id": name, "labels": sorted(found)} for name, found in zip(news.ids, news.labels, strict=True)
    )
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(label) + "\n" for label in labels))
    # `tail -F` and `--follow` would wait for more lines forever; the port may be somebody's.
    script = "\n".join(commands).replace("tail -F ", "cat ").replace(" --follow", "")
    script = script.replace("--http 9464", "--http 0")
    program = f'stream-hc() {{ "{sys.executable}" -m stream_hc.cli "$@"; }}\nset -euo pipefail\n{script}'
    result = subprocess.run(
        ["bash", "-c", program], cwd=tmp_path, capture_output=True, text=True, env=environment(), check=False
    )
    assert result.returncode == 0, result.stderr
    assert len((tmp_path / "predictions.jsonl").read_text().splitlines()) == 200
    assert (tmp_path / "pictures" / "running.png").exists()
    assert "sport\n├── " in result.stdout
    assert "champion" in result.stdout
