"""Where and with what the numbers were made: no host names, no paths."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["machine", "versions"]

PACKAGES = ("stream_hc", "numpy", "scipy", "numba", "msgspec", "river", "scikit-learn", "vowpalwabbit")
PACKAGES += ("napkinxc", "fasttext")


def machine() -> str:
    """Return processor, cores, system and Python in one line."""
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if "model name" in line
        ]
        processor = names[0] if names else processor
    system = f"{platform.system()} {platform.machine()}"
    return f"{processor}, {os.cpu_count()} cores, {system}, Python {platform.python_version()}"


def versions() -> dict[str, str]:
    """Return the versions of what took part, where installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
