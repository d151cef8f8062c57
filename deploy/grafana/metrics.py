"""What an expression may name: the metrics that the telemetry has, and those that the rules record."""

import re
from collections.abc import Iterator
from pathlib import Path

from stream_hc.runtime.telemetry.catalogue import Catalogue
from stream_hc.runtime.telemetry.families import Count, Family, Histogram

__all__ = ["FAMILIES", "RECORDED", "UnknownMetricError", "families_of", "samples_of"]

RULES = Path(__file__).parents[1] / "prometheus" / "rules.yml"
OF_PROMETHEUS = {"up", "ALERTS"}
# What prometheus_client tells of the process, on Linux.
OF_THE_PROCESS = {
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_virtual_memory_bytes",
    "process_open_fds",
    "process_max_fds",
    "process_start_time_seconds",
}
OF_THE_TARGET = {"job", "instance", "le"}


class UnknownMetricError(ValueError):
    """An expression that would never find anything; the message names the culprit."""


def samples_of(family: Family) -> list[str]:
    """Return the names under which Prometheus keeps a family.

    >>> samples_of(Count("letters", "Letters seen."))
    ['streamhc_letters_total']
    """
    if isinstance(family, Count):
        return [f"{family.name}_total"]
    if isinstance(family, Histogram):
        return [f"{family.name}_{part}" for part in ("bucket", "sum", "count")]
    return [family.name]


def _families() -> Iterator[tuple[str, Family]]:
    for family in vars(Catalogue()).values():
        if isinstance(family, Family):
            for name in samples_of(family):
                yield name, family


FAMILIES: dict[str, Family] = dict(_families())
RECORDED = set(re.findall(r"- record: (\S+)", RULES.read_text()))


def families_of(expression: str) -> list[Family]:
    """Return the families that an expression names; an error if it names something that does not exist."""
    found: dict[str, Family] = {}
    recorded = r"\b\w+:\w+:\w+\b"
    for name in re.findall(recorded, expression):
        if name not in RECORDED:
            raise UnknownMetricError(f"{name} is not recorded in {RULES.name}: {expression}")
    plain = re.sub(recorded, "recorded", expression)
    for name, _, matchers in re.findall(r"\b(streamhc_\w+|process_\w+)\b(\{([^}]*)\})?", plain):
        if name in OF_THE_PROCESS:
            continue
        if name not in FAMILIES:
            raise UnknownMetricError(f"there is no metric {name}: {expression}")
        family = found.setdefault(FAMILIES[name].name, FAMILIES[name])
        for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers):
            if label not in OF_THE_TARGET and label not in family.labels:
                raise UnknownMetricError(f"{name} has no label {label}: {expression}")
    return list(found.values())
