"""The `stream-hc` command.

The modules with the commands declare options and import next to nothing; the work, and the second it takes to
import the learners, waits in modules that a command imports when it runs. So help and completion are quick.
"""

from stream_hc.cli.app import main

__all__ = ["main"]
