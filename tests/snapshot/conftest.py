"""A file that is already there, and a version that does not change."""

from pathlib import Path

import pytest

from stream_hc.snapshot import (
    save,
    writing,
)
from tests.snapshot.support import (
    Bag,
)


@pytest.fixture
def fixed_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "created_by", lambda: "stream_hc test")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file that is already there."""
    path = tmp_path / "model.snap"
    save(path, Bag(t=1))
    return path
