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
from stream_hc.runtime.report.topics import Topics, topics_of
from stream_hc.runtime.report.words import words_section
from stream_hc.runtime.report.writing import render_report, write_report

__all__ = [
    "WORDS",
    "Points",
    "Span",
    "Summary",
    "Topics",
    "family",
    "plot_run",
    "render_report",
    "sentence",
    "styles_of",
    "thin_out",
    "topics_of",
    "words_section",
    "write_report",
]
