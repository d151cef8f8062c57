"""The page about a job: its parts, in their order."""

from collections import Counter
from pathlib import Path

from stream_hc.evaluate.drawing import shorten
from stream_hc.runtime.log import RunLog
from stream_hc.runtime.report.chart import MOST_LABELS, Chart, Curve, Lane
from stream_hc.runtime.report.page import figure, legend, name, page, section, tiles
from stream_hc.runtime.report.summary import MARKED, Summary, count, family
from stream_hc.runtime.report.tables import (
    dead_letters_table,
    depth_table,
    events_table,
    labels_table,
    models_table,
)
from stream_hc.taxonomy import Taxonomy

__all__ = ["write_report"]

ABOUT_LOSS = (
    "The H-loss of a document counts the topics at which the prediction first goes wrong on the way down; "
    "lower is better, 0 is perfect."
)


def write_report(log: RunLog, path_html: Path, title: str, taxonomy: Taxonomy | None = None) -> None:
    """Write a page about a job: one file that needs nothing else. Same log, same bytes.

    Parameters
    ----------
    log
        What the job wrote about itself, from `read_log`.
    path_html
        The file to write.
    title
        Heading of the page.
    taxonomy
        Tells how many topics there are at each depth.
    """
    summary = Summary(log)
    last = summary.last
    parts = [_headline(summary), _recent(summary), _running(summary)]
    if last is not None:
        parts += [
            f'<div class="columns">\n{models_table(summary, last)}\n{depth_table(last, taxonomy)}\n</div>',
            events_table(summary),
            f'<div class="columns">\n{labels_table(last)}\n{dead_letters_table(last)}\n</div>',
        ]
    else:
        parts.append(events_table(summary))
    topics = f" in a taxonomy of {len(taxonomy):,} topics" if taxonomy is not None else ""
    filed = (
        f"{last.documents:,} documents filed{topics}" if last is not None else f"Nothing filed{topics} yet"
    )
    foot = (
        "This page is one file: it loads nothing and runs nothing. All numbers are from the log of the job."
    )
    Path(path_html).write_text(page(title, f"{filed}. {ABOUT_LOSS}", parts, foot), encoding="utf-8")


def _headline(summary: Summary) -> str:
    last, happened = summary.last, summary.happened
    best = summary.best_single()
    documents, labelled = (last.documents, last.labelled) if last else (0, 0)
    served = last.served if last and last.served.scored else None
    dead = sum(last.rejected.values()) if last else 0
    failed = happened["refit_failed"]
    share = f"{labelled / documents:.0%} of the documents" if documents else ""
    champion = f"champion: {name(last.champion)}" if last else ""
    asked = happened["promoted"]
    return tiles(
        [
            ("Documents", f"{documents:,}", champion),
            ("Labelled", f"{labelled:,}", share),
            (
                "H-loss of what was served",
                f"{served.mean:.3f}" if served else "—",
                f"recent documents: {served.recent:.3f}" if served else "",
            ),
            ("H-loss of the best single model", f"{best[1].mean:.3f}" if best else "—", _against(summary)),
            (
                "Swaps",
                f"{happened['swap'] + asked:,}",
                f"{count(happened['rollback'], 'rollback')}{f', {asked:,} asked for' if asked else ''}",
            ),
            ("Re-fits", f"{happened['refit']:,}", f"{failed:,} failed" if failed else "none failed"),
            ("Drifts", f"{happened['drift']:,}", "changes of the champion’s H-loss"),
            (
                "Dead letters",
                f"{dead:,}",
                f"{dead / documents:.2%} of the documents" if dead and documents else "",
            ),
        ]
    )


def _against(summary: Summary) -> str:
    best = summary.best_single()
    if best is None or summary.last is None or best[1].mean <= 0:
        return name(best[0]) if best else ""
    change = summary.last.served.mean / best[1].mean - 1
    words = (
        "as good as it"
        if abs(change) < 0.0005
        else f"{abs(change):.1%} {'below' if change < 0 else 'above'} it"
    )
    return f"{name(best[0])}; served is {words}"


def _curves(summary: Summary, running: bool) -> list[Curve]:
    alive = summary.last.scores if summary.last else {}
    curves = [Curve("served", summary.points(None, running))]
    for model in summary.models:
        curves.append(Curve(model, summary.points(model, running), summary.styles[model], model in alive))
    return [curve for curve in curves if curve.points]


def _legend(curves: list[Curve]) -> str:
    """Name the lines; fits of a model that are gone share an entry, since there may be hundreds."""
    crowded = sum(curve.ends for curve in curves) > MOST_LABELS
    gone = Counter(family(curve.name) for curve in curves if not curve.ends)
    entries = [(curve.name, curve.number, not crowded) for curve in curves if curve.ends]
    for kind, number in gone.items():
        first = next(curve for curve in curves if not curve.ends and family(curve.name) == kind)
        entries.append((first.name if number == 1 else f"{kind}: {number} earlier ones", first.number, False))
    return legend(entries)


def _recent(summary: Summary) -> str:
    curves = _curves(summary, running=False)
    spans = summary.champions()
    lanes = [Lane(word, summary.marks(kinds)) for word, kinds in MARKED]
    ends = "; ".join(f"{shorten(curve.name, 80)} {curve.points[-1][1]:.3f}" for curve in curves[:MOST_LABELS])
    answered = "; ".join(f"{shorten(span.model, 80)} from {span.first:,}" for span in spans[-MOST_LABELS:])
    about = f"At the end: {ends or 'no labelled documents yet'}. Champions: {answered or 'none yet'}."
    chart = Chart(
        "recent",
        "Recent H-loss along the stream",
        about,
        curves,
        summary.end,
        [lane for lane in lanes if lane.events],
        [(span, summary.styles[span.model][0]) for span in spans],
    )
    lead = "The thick line is what was served; the band below shows which model answered when."
    return section("h-recent", "Recent H-loss", f'<p class="lead">{lead}</p>', _legend(curves), figure(chart))


def _running(summary: Summary) -> str:
    curves = _curves(summary, running=True)
    ends = "; ".join(f"{shorten(curve.name, 80)} {curve.points[-1][1]:.3f}" for curve in curves[:MOST_LABELS])
    about = f"At the end: {ends or 'no labelled documents yet'}."
    chart = Chart("running", "Mean H-loss since the beginning", about, curves, summary.end)
    lead = "Over all documents that a model has predicted. A model that came later was spared the beginning."
    return section(
        "h-running", "Mean since the beginning", f'<p class="lead">{lead}</p>', _legend(curves), figure(chart)
    )
