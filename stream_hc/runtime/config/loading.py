"""The configuration of a job from a TOML file, the environment and options, and what is wrong with it.

Options count more than the environment, the environment more than the file, the file more than the defaults.
Every mistake in any of them is reported, also where something else overrides it; whether values go together
is asked of those that hold. The text "none" stands for None wherever a key may be None, since TOML has no
word for it.
"""

from collections.abc import Mapping
from typing import Any

from stream_hc.runtime.config.checks import CHECKS
from stream_hc.runtime.config.configured import ConfigError, Configured
from stream_hc.runtime.config.reading import Reading

__all__ = ["load_config"]


def load_config(
    path: str | None,
    environment: Mapping[str, str],
    options: Mapping[str, Any],
    flags: Mapping[str, str] | None = None,
) -> Configured:
    """Return the configuration, or raise `ConfigError` with everything that is wrong.

    Parameters
    ----------
    path
        TOML file; paths in it are relative to its folder.
    environment
        Variables such as STREAM_HC_REFIT_WINDOW count, and others are left alone; an empty one is not set.
    options
        Values by dotted name; None is not given. Text is read as in the environment.
    flags
        What the user typed for an option, where it is not what `flag_of` says.

    Examples
    --------
    >>> job = load_config(None, {"STREAM_HC_REFIT_WINDOW": "3000"}, {"judge.margin": 0.02})
    >>> job.config.refit.window, job.origin["refit.window"], job.origin["judge.margin"]
    (3000, 'STREAM_HC_REFIT_WINDOW', '--margin')
    """
    reading = Reading()
    if path is not None:
        reading.file(path)
    reading.environment(environment)
    reading.options(options, flags or {})
    configured = reading.configured()
    for names, check in CHECKS:
        if not reading.wrong.intersection(names):  # a value that is wrong by itself is no base for more
            reading.problems += check(configured)
    if reading.problems:
        raise ConfigError(reading.problems)
    return configured
