"""Several runs on one stream, side by side: a table for the terminal, Markdown, JSON."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from stream_hc.evaluate.run import Run

__all__ = ["Cell", "Column", "Comparison"]


class Column(NamedTuple):
    """How one number of a summary is shown."""

    key: str
    title: str
    format: str
    best: Callable[[Sequence[float]], float]


COLUMNS = (
    Column("zero_one", "zero-one", ".3f", min),
    Column("h_loss", "H-loss", ".3f", min),
    Column("normalized_h_loss", "normalized H", ".4f", min),
    Column("symmetric_difference", "Δ-loss", ".3f", min),
    Column("micro_f1", "micro-F1", ".3f", max),
    Column("documents_per_second", "documents/s", ",.0f", max),
)


class Cell(NamedTuple):
    """A value as shown, and whether it is the best of its column."""

    text: str
    best: bool


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare` returns.

    `runs` keeps the order in which the models were given, so that a learner has the same colour in every
    plot; tables and JSON are sorted by H-loss, the best first.
    """

    dataset: str
    protocol: str
    n_documents: int
    runs: tuple[Run, ...]

    @property
    def ranking(self) -> list[Run]:
        """The runs by mean H-loss; equal ones in the order given."""
        return sorted(self.runs, key=lambda run: run.mean("h_loss"))

    @property
    def title(self) -> str:
        """Data set, protocol and number of documents in one line."""
        scored = len(self.runs[0])
        documents = f"{scored:,}" if scored == self.n_documents else f"{scored:,} of {self.n_documents:,}"
        delay = f", labels {self.runs[0].delay:,} documents later" if self.runs[0].delay else ""
        return f"{self.dataset}: {self.protocol}, {documents} documents scored{delay}"

    def table(self) -> Table:
        """Return a table for `rich.print`; the best value of each column is bold."""
        table = Table(title=self.title)
        table.add_column("learner")
        for column in COLUMNS:
            table.add_column(column.title, justify="right")
        for run, cells in self._cells():
            # As Text a name is shown as it is; a str might be read as markup.
            table.add_row(
                Text(run.name), *(Text(cell.text, style="bold" if cell.best else "") for cell in cells)
            )
        return table

    def to_markdown(self) -> str:
        """Return the table in Markdown; the best value of each column is bold."""
        lines = [
            "| " + " | ".join(["learner", *(column.title for column in COLUMNS)]) + " |",
            "|---|" + "---:|" * len(COLUMNS),
        ]
        for run, cells in self._cells():
            shown = [f"**{cell.text}**" if cell.best else cell.text for cell in cells]
            lines.append("| " + " | ".join([run.name.replace("|", "\\|"), *shown]) + " |")
        return "\n".join(lines) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values.

        `dataset` (its name), `protocol`, `documents` (in the whole data set) and `runs`, the best H-loss
        first: a list of what `Run.summary` returns.
        """
        return {
            "dataset": self.dataset,
            "protocol": self.protocol,
            "documents": self.n_documents,
            "runs": [run.summary() for run in self.ranking],
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)

    def _cells(self) -> list[tuple[Run, list[Cell]]]:
        ranking = self.ranking
        summaries = [run.summary() for run in ranking]
        columns = [
            _column_cells([summary[column.key] for summary in summaries], column) for column in COLUMNS
        ]
        return list(zip(ranking, map(list, zip(*columns, strict=True)), strict=True))


def _column_cells(values: Sequence[float | None], column: Column) -> list[Cell]:
    """Format a column. What looks like the best is as good; one alone is not the best of anything."""
    present = [value for value in values if value is not None]
    best = format(column.best(present), column.format) if len(present) > 1 else None
    texts = ["–" if value is None else format(value, column.format) for value in values]
    return [Cell(text, text == best) for text in texts]
