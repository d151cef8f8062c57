"""One picture: documents a second on a logarithmic axis, ours in another colour."""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from bench.rounds import Timing

__all__ = ["draw"]

OURS, PEERS, LIMIT = "#1f6f8b", "#b0b7bd", "#e07a3f"


def draw(timings: dict[str, Timing], path: Path) -> None:
    """Write a bar for everyone, task by task, fastest first."""
    groups = list(dict.fromkeys(timing.contestant.group for timing in timings.values()))
    ordered = sorted(timings.values(), key=lambda one: (groups.index(one.contestant.group), -one.median))
    figure, axes = plt.subplots(figsize=(9, 0.34 * len(ordered) + 0.4 * len(groups) + 1))
    place, ticks, names, last = 0.0, [], [], ""
    for timing in ordered:
        group = timing.contestant.group
        if group != last:
            place += 0.9
            axes.text(110, place - 0.65, group, fontsize=8, style="italic", va="center")
            last = group
        colour = LIMIT if group == groups[0] else OURS if timing.contestant.ours else PEERS
        axes.barh(place, timing.median, color=colour, height=0.7)
        axes.text(timing.median * 1.05, place, f"{timing.median:,.0f}", fontsize=8, va="center")
        ticks.append(place)
        names.append(timing.contestant.name)
        place += 1.0
    axes.set_yticks(ticks, names, fontsize=8)
    axes.invert_yaxis()
    axes.set(xscale="log", xlim=(100, 1_500_000), xlabel="documents a second (logarithmic)")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
