"""The work behind `stream-hc explain`: find model and document, explain, print."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import typer

from stream_hc.cli.errors import CliError, Code, usage_error
from stream_hc.cli.explain_words import names_in, names_of
from stream_hc.cli.explanation import print_explanation, print_strongest
from stream_hc.cli.finding import Found, Vectorizer, find, model_of
from stream_hc.explain import NotLinearError, explain, strongest
from stream_hc.runtime.jsonl import Line, open_lines
from stream_hc.runtime.preparing import Preparer
from stream_hc.runtime.records import MAX_LINE_BYTES, Document, RecordError, parse_document
from stream_hc.taxonomy import Taxonomy
from stream_hc.vectorize import Rows, TextVectorizer, feature_rows

__all__ = ["Asked", "show_why"]


@dataclass(frozen=True)
class Asked:
    """What `stream-hc explain` was asked, by the names of its options."""

    where: Path
    source: str | None = None
    text: str | None = None
    id: str | None = None
    node: str | None = None
    learner: str | None = None
    top: int = 8
    json: bool = False


def show_why(asked: Asked) -> None:
    """Explain a document, or a node where no document is given."""
    if asked.text is not None and (asked.source is not None or asked.id is not None):
        raise usage_error("--text is a document itself: leave out FILE and --id")
    if asked.id is not None and asked.source is None:
        raise usage_error("--id needs the JSON lines to look in: name a FILE, or - for standard input")
    if asked.text is None and asked.source is None and asked.node is None:
        raise usage_error('no document: give --text "...", a FILE, or --node NODE for its strongest words')
    found = find(asked.where)
    name, model = model_of(found, asked.learner)
    if asked.node is not None and asked.node not in found.taxonomy:
        raise usage_error(f"there is no node {asked.node!r}: stream-hc taxonomy draw shows them")
    try:
        if asked.text is None and asked.source is None:
            _show_node(asked, found, name, model)
        else:
            _show_document(asked, found, name, model)
    except NotLinearError as error:
        raise CliError(f"{name}: {error}", Code.BAD_INPUT) from error


def _show_document(asked: Asked, found: Found, name: str, model: Any) -> None:
    document = _document(asked)
    row = _row(document, found, model.n_features)
    names = names_in(document, row.indices.tolist(), found.vectorizer, model.n_features)
    explanation = explain(model, row, names, asked.node, asked.top)
    if asked.json:
        about = {"id": document.id, "model": name}
        plain = {**about, **msgspec.to_builtins(explanation)}
        typer.echo(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode())
    else:
        print_explanation(name, document, explanation)


def _show_node(asked: Asked, found: Found, name: str, model: Any) -> None:
    assert asked.node is not None
    pairs = strongest(model, asked.node, asked.top)
    names = names_of([column for column, _ in pairs], found.vectorizer)
    words = [(word, column, weight) for word, (column, weight) in zip(names, pairs, strict=True)]
    if asked.json:
        rows = [{"feature": word, "column": column, "weight": weight} for word, column, weight in words]
        plain = {"model": name, "node": asked.node, "strongest": rows}
        typer.echo(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode())
    else:
        print_strongest(name, asked.node, words)


def _document(asked: Asked) -> Document:
    if asked.text is not None:
        return Document("--text", asked.text)
    assert asked.source is not None
    with open_lines(asked.source, MAX_LINE_BYTES) as batches:
        for batch in batches:
            for line in batch:
                document = _parsed(asked, line)
                if document is not None:
                    return document
    what = "no document" if asked.id is None else f"no document with the id {asked.id!r}"
    raise CliError(f"{_shown(asked.source)}: {what}", Code.BAD_INPUT)


def _parsed(asked: Asked, line: Line) -> Document | None:
    """Return the document in a line if it is the one; bad lines matter only where any would do."""
    try:
        document = parse_document(line.data)
    except RecordError as error:
        if asked.id is None:
            where = f"{_shown(asked.source or '-')}, line {line.number}"
            raise CliError(f"{where}: {error.detail}", Code.BAD_INPUT) from error
        return None
    return document if asked.id in (None, document.id) else None


def _shown(source: str) -> str:
    return "standard input" if source == "-" else source


def _row(document: Document, found: Found, n_features: int) -> Rows:
    vectorizer: Vectorizer | None = found.vectorizer
    if vectorizer is None:
        if document.text is not None:
            problem = "a model without its vectorizer: give features or a vector instead of a text"
            raise CliError(f"{found.path}: {problem}", Code.BAD_INPUT)
        vectorizer = TextVectorizer(n_features=n_features, names=0)  # only its size is asked for
    without_labels = msgspec.structs.replace(document, labels=None)
    try:
        row = Preparer(Taxonomy([]), vectorizer).row(without_labels)
    except RecordError as error:
        raise CliError(f"{document.id}: {error.detail}", Code.BAD_INPUT) from error
    return feature_rows(vectorizer.transform([document.text or ""]), n_features) if row is None else row
