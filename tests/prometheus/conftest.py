"""Prometheus for the tests: the real one, on loopback, with a configuration, rules and data of its own.

Without it the tests are skipped and say why; where CI=true, that is a failure.
"""

import os
import shutil
import subprocess

import pytest


def find(program):
    """Return the path of a program, or skip, or fail where a skip would go unnoticed."""
    path = shutil.which(program)
    if path is None:
        reason = f"no {program}: install the package prometheus, on Debian by apt-get install prometheus"
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return path


@pytest.fixture(scope="session")
def prometheus():
    return find("prometheus")


@pytest.fixture(scope="session")
def promtool():
    """Return a function that runs promtool and returns how it went, and what it said."""
    path = find("promtool")

    def run(*arguments, told=""):
        done = subprocess.run([path, *map(str, arguments)], input=told, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    return run
