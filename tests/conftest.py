"""What all tests share: the folder of real data sets, which may be missing, and an unhurried hypothesis."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from tests.strategies import examples

ROOT = Path(__file__).resolve().parent.parent

# Whoever starts the tests in the background may have them ignore Ctrl-C, and so all that they start; with a
# handler here, it is as in a terminal again.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Uncompiled kernels and first compilations take their time: a slow example is no failure.
settings.register_profile("stream_hc", deadline=None, derandomize=True, max_examples=examples(100))
settings.load_profile("stream_hc")


# What is tested there calls few kernels or none, but starts servers: once is enough, where lines are counted.
ONCE = ("deploy", "kafka", "prometheus")


@pytest.hookimpl(tryfirst=True)  # before the tests are chosen by their marks
def pytest_collection_modifyitems(items):
    folders = [ROOT / "tests" / name for name in ONCE]
    for item in items:
        if any(folder in item.path.parents for folder in folders) and not item.get_closest_marker("compiled"):
            item.add_marker("once")


def pytest_runtest_setup():
    os.environ.pop("STREAM_HC_DEBUG", None)  # which `--debug` sets, also where a test runs the command here


def real_data_folder():
    return Path(os.environ.get("STREAM_HC_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture
def real_data():
    """Return the path of a real data set by name, or skip."""

    def find(name):
        folder = real_data_folder() / name
        if not folder.is_dir():
            pytest.skip(f"no data set {name}: set STREAM_HC_DATA to the folder that holds it")
        return folder

    return find
