"""The files of deploy/, read the way their programs read them, as far as that can be done without these."""

import json
import re
import shlex
import shutil
import tomllib
from itertools import pairwise
from pathlib import Path

import yaml

from stream_hc.runtime.config import KEYS, load_config

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SERVED = {"/healthz", "/readyz", "/metrics"}
COMMAND = ["stream-hc", "kafka", "consume", "--config", "/etc/stream-hc/job.toml"]
USER = 10001
VARIABLES = {key.variable for key in KEYS.values()}


def instructions(path):
    """Return the instructions of a Containerfile, stage by stage, each as (name, what follows)."""
    text = "\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith("#"))
    lines = [line for line in re.sub(r"\\\n", " ", text).splitlines() if line.strip()]
    parts = [(name, rest.strip()) for name, rest in (line.split(None, 1) for line in lines)]
    begins = [place for place, (name, _) in enumerate(parts) if name == "FROM"] + [len(parts)]
    return [parts[start:end] for start, end in pairwise(begins)]


def environment(stage):
    """Return what the ENV instructions of a stage set."""
    words = [word for name, rest in stage if name == "ENV" for word in shlex.split(rest)]
    return dict(word.split("=", 1) for word in words)


def only(stage, name):
    """Return what follows an instruction that stands there once; a list if it is written as one."""
    (found,) = [rest for each, rest in stage if each == name]
    return json.loads(found) if found.startswith("[") else found


def documents(folder):
    """Return the Kubernetes objects in a folder by kind."""
    found = [yaml.safe_load(path.read_text()) for path in sorted(folder.glob("*.yaml"))]
    return {each["kind"]: each for each in found}


def compose():
    """Return the compose file with the defaults of its variables."""
    text = (DEPLOY / "compose" / "compose.yml").read_text()
    return yaml.safe_load(re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text))


def lay_out(folder, job, taxonomy):
    """Put the two files where a container finds them, and return the path of the job."""
    shutil.copy(taxonomy, folder / "taxonomy.tsv")
    return Path(shutil.copy(job, folder / "job.toml"))


def configured(folder, job, taxonomy, variables=None, **options):
    """Return the configuration of a job as this very program reads it."""
    path = lay_out(folder, job, taxonomy)
    return load_config(str(path), variables or {}, {"state.folder": str(folder / "state"), **options})
