"""Compile the kernels before the tests need them: two processes, each with what the other does not compile.

`python -m tests.warm`. Without it both processes of the tests compile most kernels, at the same time.
"""

import subprocess
import sys

from stream_hc.cli.warming import steps

__all__ = ["main"]

# About half of the work, with next to no kernels in common with the rest.
APART = ("max-margin", "pa", "hpa", "lhpa", "ranking")


def main(names: list[str]) -> None:
    """Call the steps of these names; without names all of them, half of them in another process."""
    here = names or [name for name in steps() if name not in APART]
    there = None if names else subprocess.Popen([sys.executable, "-m", "tests.warm", *APART])
    for name in here:
        steps()[name]()
    if there is not None and there.wait():
        sys.exit(there.returncode)


if __name__ == "__main__":
    main(sys.argv[1:])
