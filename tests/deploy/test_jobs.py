"""The configurations, as this very program reads them, and the page that tells how to use all of it."""

import re
import tomllib

import pytest

from stream_hc.datasets import make_news
from stream_hc.runtime.config import KEYS, file_problems
from stream_hc.taxonomy import Taxonomy
from tests.deploy.support import DEPLOY, ROOT, VARIABLES, configured

JOBS = [DEPLOY / place / "job.toml" for place in ("config", "compose", "kubernetes/base")]
TAXONOMIES = [DEPLOY / place / "taxonomy.tsv" for place in ("config", "kubernetes/base")]
each_job = pytest.mark.parametrize("path", JOBS, ids=lambda path: path.parent.name)


@each_job
def test_a_job_is_valid_and_its_taxonomy_sound(path, tmp_path):
    job = configured(tmp_path, path, TAXONOMIES[0])
    assert file_problems(job) == []
    assert job.config.kafka.transactions
    assert job.config.model.learners == ["h-arow", "node-pa"]


@each_job
def test_state_is_kept_where_the_volume_is(path):
    assert tomllib.loads(path.read_text())["state"]["folder"] == "/var/lib/stream-hc/state"


@each_job
def test_a_job_holds_no_secret(path):
    assert not re.search(r'(?m)^#?\s*(key_)?password = "', path.read_text())


def test_lines_behind_a_sign_are_defaults_or_examples_that_hold(tmp_path):
    text = JOBS[0].read_text()
    table, shown = "", {}
    for line in text.splitlines():
        if heading := re.fullmatch(r"#?\[(\w+)\]", line):
            table = heading[1]
        elif found := re.match(r"#(\w+) = ([^#]+)", line):
            shown[f"{table}.{found[1]}"] = tomllib.loads(f"x = {found[2]}")["x"]
    examples = {"security", "ca", "sasl", "username", "password_file"}
    assert examples <= {name.partition(".")[2] for name in shown}
    for name, value in shown.items():
        key = name.partition(".")[2]
        if key not in examples and name not in ("http.token_file", "http.enabled"):
            assert value == ("none" if KEYS[name].default is None else KEYS[name].default), name
    opened = tmp_path / "open.toml"
    opened.write_text(re.sub(r"(?m)^#(\w+ = )", r"\1", text.partition("# Telemetry")[0]))
    assert configured(tmp_path, opened, TAXONOMIES[0]).config.kafka.sasl == "scram-sha-512"


@pytest.mark.parametrize("path", TAXONOMIES, ids=lambda path: path.parent.name)
def test_the_taxonomy_is_that_of_the_synthetic_news(path):
    assert Taxonomy.read(path) == make_news(1).taxonomy


def test_every_variable_that_is_named_anywhere_is_one():
    for path in sorted(DEPLOY.rglob("*")):
        if path.is_file() and path.parent.name != "kafka" and path.suffix not in (".pyc", ".png"):
            named = set(re.findall(r"\bSTREAM_HC_[A-Z_]+\b", path.read_text()))
            assert named - {"STREAM_HC_", "STREAM_HC_HTTP_"} <= VARIABLES, path


def test_what_the_page_names_is_there():
    page = (DEPLOY / "README.md").read_text()
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page)
    assert links
    assert [link for link in links if not (DEPLOY / link).exists()] == []
    paths = set(re.findall(r"(?<![\w/.])deploy/[\w./-]+\w", page))
    assert len(paths) > 8
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_whatever_the_page_tells_to_run_are_commands_of_ours():
    page = (DEPLOY / "README.md").read_text()
    commands = set(re.findall(r"stream-hc (config check|kafka \w+|doctor)", page))
    assert commands == {
        "config check",
        "kafka doctor",
        "kafka consume",
        "kafka produce",
        "kafka tail",
        "doctor",
    }
