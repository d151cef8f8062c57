"""The page about a job: its parts, in their order."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from stream_hc.evaluate.drawing import shorten
from stream_hc.runtime.log import RunLog
from stream_hc.runtime.report.chart import MOST_LABELS, Chart, Curve, Lane
from stream_hc.runtime.report.page import figure, legend, name, page, section, text, tiles
from stream_hc.runtime.report.summary import MARKED, Summary, count, family
from stream_hc.runtime.report.tables import (
    dead_letters_table,
    depth_table,
    events_table,
    labels_table,
    models_table,
)
from stream_hc.runtime.report.topics import Topics, topics_section
from stream_hc.taxonomy import Taxonomy

__all__ = ["FOOT", "notes_section", "render_report", "write_report"]

FOOT = "This page is one file: it loads nothing and runs nothing."

ABOUT_LOSS = (
    "The H-loss of a document counts the topics at which the prediction first goes wrong on the way down; "
    "lower is better, 0 is perfect."
)


def write_report(
    log: RunLog,
    path_html: Path,
    title: str,
    taxonomy: Taxonomy | None = None,
    topics: tuple[Topics, Topics] | None = None,
) -> None:
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
    topics
        How well each of them is filed, from `topics_of`.
    """
    Path(path_html).write_text(render_report(log, title, taxonomy, topics), encoding="utf-8")


def render_report(
    log: RunLog,
    title: str,
    taxonomy: Taxonomy | None = None,
    topics: tuple[Topics, Topics] | None = None,
    more: Sequence[str] = (),
    notes: Sequence[str] = (),
    happened: Mapping[str, int] | None = None,
) -> str:
    """Return that page.

    Parameters
    ----------
    log
        What the job wrote about itself; where it has no more than one standing there are no curves.
    title
        Heading of the page.
    taxonomy
        Of the job.
    topics
        How well each topic is filed: over everything, and lately.
    more
        Further sections, as HTML.
    notes
        What is not known, and where to find it.
    happened
        How many events of each kind there were, where the log does not have them.
    """
    summary = Summary(log)
    if happened is not None:
        summary.happened = Counter(happened)
    last = summary.last
    parts = [_headline(summary)]
    if len(log.standings) != 1:
        parts += [_recent(summary), _running(summary)]
    if last is not None:
        parts.append(
            f'<div class="columns">\n{models_table(summary, last)}\n{depth_table(last, taxonomy)}\n</div>'
        )
    if taxonomy is not None and topics is not None:
        parts.append(topics_section(taxonomy, *topics))
    parts += more
    if len(log.standings) != 1 or log.events:
        parts.append(events_table(summary))
    if last is not None:
        if len(log.standings) > 1:
            parts.append(_waiting(summary))
        parts.append(f'<div class="columns">\n{labels_table(last)}\n{dead_letters_table(last)}\n</div>')
    parts += notes_section(notes)
    where = f" in a taxonomy of {len(taxonomy):,} topics" if taxonomy is not None else ""
    filed = f"{last.documents:,} documents filed{where}" if last is not None else f"Nothing filed{where} yet"
    return page(title, f"{filed}. {ABOUT_LOSS}", parts, f"{FOOT} All numbers are those of the job.")


def notes_section(notes: Sequence[str]) -> list[str]:
    """Return a section that says what is left out, or none."""
    if not notes:
        return []
    items = "".join(f"<li>{text(note)}</li>" for note in notes)
    return [section("h-notes", "What this page does not know", f"<ul>{items}</ul>")]


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


def _waiting(summary: Summary) -> str:
    """Draw how many documents waited for labels, and labels for documents."""
    standings = summary.log.standings
    curves = [
        Curve("documents", [(each.labelled, float(each.waiting_documents)) for each in standings], (0, 0)),
        Curve("labels", [(each.labelled, float(each.waiting_labels)) for each in standings], (1, 1)),
    ]
    curves = [curve._replace(form=",.0f") for curve in curves]
    ends = "; ".join(f"{curve.name} {curve.points[-1][1]:,.0f}" for curve in curves)
    chart = Chart("waiting", "What waits", f"At the end: {ends}.", curves, summary.end)
    lead = (
        "Documents that were answered and wait for their labels, and labels that came before their document."
    )
    return section("h-waiting", "What waits", f'<p class="lead">{lead}</p>', _legend(curves), figure(chart))
