"""`stream-hc run --http`: served while it runs, ready when it is; mistakes are told before it begins."""

import json
import re
import time

import pytest

from stream_hc.cli.errors import CliError
from stream_hc.cli.serving import split_address
from stream_hc.runtime.config import Config, ModelConfig
from stream_hc.runtime.warming import compile_kernels
from tests.cli.support import call, start
from tests.http.serving import ask

TREE, LINE = "sport\t\ntennis\tsport\n", '{"id": "%d", "text": "an ace", "labels": ["tennis"]}\n'


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tree.tsv").write_text(TREE)
    (tmp_path / "docs.jsonl").write_text("".join(LINE % number for number in range(20)))
    return tmp_path


@pytest.mark.compiled
def test_it_is_served_while_lines_come(folder):
    process = start("run", "-", "-t", folder / "tree.tsv", "--http", "0")
    try:
        url = re.search(r"http\S+", process.stderr.readline().decode())[0]
        until = time.monotonic() + 120
        while ask(url + "readyz").code != 200:  # alive before it is ready
            assert ask(url + "healthz").code == 200
            assert time.monotonic() < until
        for number in range(5):
            process.stdin.write((LINE % number).encode())
            assert json.loads(process.stdout.readline())["id"] == str(number)
        while ask(url + "api/status").json["documents"] < 5:
            assert time.monotonic() < until
        assert b"streamhc_documents_consumed_total 5.0" in ask(url + "metrics").body
        assert b"<title>stream-hc</title>" in ask(url).body
    finally:
        process.stdin.close()
        process.wait(60)
        process.stdout.close()
        process.stderr.close()
    assert process.returncode == 0


@pytest.mark.compiled
def test_it_goes_on_from_a_model_file_and_from_a_state(folder):
    for kept in (("--snapshot", folder / "model.snap"), ("--state", folder / "state")):
        for _ in range(2):
            done = call(
                "run", folder / "docs.jsonl", "-t", folder / "tree.tsv", "-l", "node-pa", *kept, "--http", "0"
            )
            assert done.returncode == 0, done.stderr
            assert b"live page: http://127.0.0.1:" in done.stderr
            assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("address", ["", "port", "127.0.0.1:", "1:2:3x", "70000", "-1"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(CliError, match="expected PORT or HOST:PORT"):
        split_address(address)


def test_it_is_refused_before_anything_is_written(folder):
    (folder / "tokens").mkdir()
    refused = {
        ("--http", "0.0.0.0:0"): "set http.token_file or http.certificate, or listen at 127.0.0.1",
        ("--http", "0", "--set", f"http.token_file={folder / 'tokens'}"): "cannot read the token",
        ("--http", "0", "--set", "http.certificate=missing.pem"): "cannot serve",
    }
    for options, problem in refused.items():
        done = call("run", folder / "docs.jsonl", "-t", folder / "tree.tsv", "-o", folder / "out", *options)
        (line,) = done.stderr.decode().splitlines()
        assert line.startswith("error: ")
        assert problem in line
        assert done.returncode != 0
        assert not (folder / "out").exists()


@pytest.mark.parametrize("sequences", [False, True])
def test_kernels_are_compiled_for_the_learners_of_the_job(sequences):
    model = ModelConfig(learners=["h-perceptron", "h-rls"], n_features=256, sequences=sequences)
    compile_kernels(Config(model=model))  # texts and sequences, labels at once and later
