"""What all tests share: the folder of real data sets, which may be missing, and an unhurried hypothesis."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.strategies import examples

ROOT = Path(__file__).resolve().parent.parent

# Uncompiled kernels and first compilations take their time: a slow example is no failure.
settings.register_profile("stream_hc", deadline=None, derandomize=True, max_examples=examples(100))
settings.load_profile("stream_hc")


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
