"""The tables of the report."""

import math

from stream_hc.runtime.events import Standing
from stream_hc.runtime.report.page import bar, name, section, swatch, table, text
from stream_hc.runtime.report.summary import WORDS, Summary, sentence
from stream_hc.taxonomy import Taxonomy

__all__ = ["dead_letters_table", "depth_table", "events_table", "labels_table", "models_table"]

MOST_MODELS, MOST_EVENTS, MOST_REASONS = 60, 400, 100  # in a table; the log has all of them
OUTCOMES = {
    "joined": "found their document and were learned",
    "expired": "documents that waited too long for labels",
    "orphan": "labels that waited too long for a document",
    "duplicate": "came a second time and were ignored",
    "changed": "came again with other labels",
    "superseded": "documents that gave way to a later one of the same id",
}


def models_table(summary: Summary, last: Standing) -> str:
    """Return the section of models with their losses, those that are gone at the end."""
    scored = [(model, *summary.last_score(model)) for model in summary.models]
    scored.sort(key=lambda row: -row[1] if row[0] not in last.scores else -math.inf)
    highest = max((score.recent for _, _, score in scored[:MOST_MODELS]), default=0.0) or 1.0
    rows = []
    for model, at, score in scored[:MOST_MODELS]:
        style = summary.styles[model]
        star = (
            ' <span class="star" role="img" aria-label="champion">★</span>' if model == last.champion else ""
        )
        gone = f' <span class="none">until {at:,}</span>' if model not in last.scores else ""
        numbers = [f"{score.mean:.3f}", f"{score.recent:.3f}"] if score.scored else ["—", "—"]
        label = f'<span class="name">{swatch(style)}<span>{name(model)}{star}{gone}</span></span>'
        rows.append([label, f"{score.scored:,}", *numbers, bar(score.recent / highest, style[0])])
    heads = [("Model", ""), ("Scored", "n"), ("Mean", "n"), ("Recent", "n"), ("", "bar-cell hide-small")]
    caption = "H-loss of each model; ★ answers now" + _left_out(len(scored) - len(rows), "older models")
    return section("h-models", "Models", table(caption, heads, rows))


def depth_table(last: Standing, taxonomy: Taxonomy | None) -> str:
    """Return the section that shares out the loss served over the depths."""
    per_document = [loss / max(last.served.scored, 1) for loss in last.by_depth]
    highest = max(per_document, default=0.0) or 1.0
    n_topics = [0] * len(per_document)
    for depth in taxonomy.depth.tolist() if taxonomy is not None else ():
        if depth < len(n_topics):
            n_topics[depth] += 1
    rows = []
    for depth, loss in enumerate(per_document):
        word = "roots" if depth == 0 else f"depth {depth}"
        topics = [f"{n_topics[depth]:,}"] if taxonomy is not None else []
        rows.append([word, *topics, f"{loss:.3f}", bar(loss / highest)])
    heads = [("Depth", ""), *([("Topics", "n")] if taxonomy is not None else []), ("H-loss", "n")]
    caption = "H-loss per document of what was served, by the depth where it first goes wrong"
    shown = table(caption, [*heads, ("", "bar-cell")], rows)
    return section(
        "h-depth", "Where mistakes begin", shown if rows else '<p class="none">Nothing scored yet.</p>'
    )


def events_table(summary: Summary) -> str:
    """Return the section of events, oldest first."""
    events = summary.log.events
    if not events:
        return section("h-events", "What happened", '<p class="none">Nothing beside predictions.</p>')
    rows = [
        [
            f"{event.labelled:,}",
            f'<span class="tag {event.what}">{WORDS[event.what]}</span> {text(sentence(event))}',
        ]
        for event in events[-MOST_EVENTS:]
    ]
    heads = [("Labelled", "n first"), ("Event", "events")]
    caption = "After how many labelled documents" + _left_out(len(events) - len(rows), "earlier events")
    return section("h-events", "What happened", table(caption, heads, rows))


def labels_table(last: Standing) -> str:
    """Return the section on labels and what waits."""
    others = {key: "" for key in last.outcomes if key not in OUTCOMES}
    rows = [
        [name(key) + _remark(about), f"{last.outcomes.get(key, 0):,}"]
        for key, about in {**OUTCOMES, **others}.items()
    ]
    predicted, early = _remark("predicted, no labels so far"), _remark("came before their document")
    rows.append([f"waiting documents{predicted}", f"{last.waiting_documents:,}"])
    rows.append([f"waiting labels{early}", f"{last.waiting_labels:,}"])
    heads = [("Outcome", ""), ("Number", "n")]
    return section("h-labels", "Labels", table("What became of labels, and what still waits", heads, rows))


def dead_letters_table(last: Standing) -> str:
    """Return the section on records that could not be used."""
    reasons = sorted(last.rejected.items(), key=lambda item: (-item[1], item[0]))
    if not any(number for _, number in reasons):
        return section("h-dead", "Dead letters", '<p class="none">None: every record could be used.</p>')
    most = max(last.rejected.values())
    rows = [[name(reason), f"{number:,}", bar(number / most)] for reason, number in reasons[:MOST_REASONS]]
    caption = "Records that could not be used, by reason" + _left_out(len(reasons) - len(rows), "reasons")
    heads = [("Reason", ""), ("Number", "n"), ("", "bar-cell")]
    return section("h-dead", "Dead letters", table(caption, heads, rows))


def _remark(about: str) -> str:
    return f' <span class="remark">{text(about)}</span>' if about else ""


def _left_out(number: int, what: str) -> str:
    return f"; {number:,} {what} left out" if number else ""
