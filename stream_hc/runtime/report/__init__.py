"""What people see of a job: one page of HTML and a picture at its end, and words for what happens."""

from stream_hc.runtime.report.picture import plot_run
from stream_hc.runtime.report.summary import (
    WORDS,
    Points,
    Span,
    Summary,
    family,
    sentence,
    styles_of,
    thin_out,
)
from stream_hc.runtime.report.writing import write_report

__all__ = [
    "WORDS",
    "Points",
    "Span",
    "Summary",
    "family",
    "plot_run",
    "sentence",
    "styles_of",
    "thin_out",
    "write_report",
]
