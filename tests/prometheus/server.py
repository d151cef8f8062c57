"""A real Prometheus in a process of its own, and what it is asked."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request

import yaml

from deploy.kafka.process import Process
from deploy.kafka.settings import free_port
from tests.conftest import ROOT
from tests.prometheus.spans import shortened

__all__ = ["Prometheus", "fetch", "wait_for"]

RULES = ROOT / "deploy" / "prometheus"
EVERY = "1s"  # scrapes
LOOK = "500ms"  # rules


def fetch(url, seconds=5.0):
    try:
        with urllib.request.urlopen(url, timeout=seconds) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:  # it holds a connection
            raise OSError(f"{url}: {error.code}: {error.read().decode()}") from None


def wait_for(what, look, seconds=30.0):
    """Return what `look` returns as soon as it is true; errors on the way do not count."""
    end, problem = time.monotonic() + seconds, None
    while time.monotonic() < end:
        try:
            found = look()
        except OSError as error:
            found, problem = None, str(error)
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what}: not after {seconds:g} s ({problem})")


class Prometheus:
    """Scrapes targets, given as port by job, with our configuration and our rules in a hurry."""

    def __init__(self, program, folder, targets):
        self.port = free_port()
        self.began = time.time()
        config = yaml.safe_load((RULES / "prometheus.yml").read_text())
        config["global"] = {"scrape_interval": EVERY, "scrape_timeout": EVERY, "evaluation_interval": LOOK}
        (usual,) = config["scrape_configs"]
        config["scrape_configs"] = [
            usual | {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
            for job, port in targets.items()
        ]
        for name in config["rule_files"]:
            (folder / name).write_text(shortened((RULES / name).read_text()))
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        command = [
            program,
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--log.level=warn",
        ]
        self._process = Process("Prometheus", command, folder / "prometheus.log")

    def __enter__(self):
        self._process.start()
        try:
            wait_for("Prometheus is ready", lambda: fetch(f"http://127.0.0.1:{self.port}/-/ready"))
        except AssertionError as error:
            raise AssertionError(self._process.output()) from error
        return self

    def __exit__(self, *_):
        self._process.kill()

    def ask(self, what, **parameters):
        query = urllib.parse.urlencode(parameters)
        answer = json.loads(fetch(f"http://127.0.0.1:{self.port}/api/v1/{what}?{query}"))
        assert answer["status"] == "success", answer
        return answer["data"]

    def now(self, expression):
        """Return what an expression gives at this moment: its labels and values."""
        found = self.ask("query", query=expression)["result"]
        return [(series["metric"], float(series["value"][1])) for series in found]

    def since_the_beginning(self, expression):
        """Return the series that an expression gives at any time since the server began."""
        return self.ask("query_range", query=expression, start=self.began, end=time.time(), step=0.5)[
            "result"
        ]

    def times(self, selector):
        """Return the samples of the only series that a selector names: time and value."""
        (series,) = self.ask("query", query=f"{selector}[5m]")["result"]
        return [(when, float(value)) for when, value in series["values"]]

    def alerts(self, job, state="firing"):
        """Return the names of alerts, at this moment."""
        return {labels["alertname"] for labels, _ in self.now(f'ALERTS{{job="{job}", alertstate="{state}"}}')}
