"""Panels as Grafana's JSON has them: the classic model, which every version since 10 reads."""

from collections.abc import Mapping, Sequence
from typing import Any

from deploy.grafana.metrics import families_of

__all__ = ["DATASOURCE", "Json", "placed", "query", "row", "stat", "table", "timeseries"]

Json = dict[str, Any]
Steps = Mapping[float, str]

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24  # columns of a dashboard


def query(expr: str, legend: str = "__auto", instant: bool = False) -> Json:
    """Return what is asked, and the name of its line; `instant` asks for the last value as a table."""
    families_of(expr)
    asked: Json = {"datasource": DATASOURCE, "editorMode": "code", "expr": expr, "legendFormat": legend}
    kind = (
        {"instant": True, "range": False, "format": "table"} if instant else {"instant": False, "range": True}
    )
    return asked | kind


def timeseries(
    title: str,
    meaning: str,
    queries: Sequence[Json],
    unit: str = "short",
    *,
    width: int = 12,
    height: int = 8,
    stacked: bool = False,
    bars: bool = False,
    steps: bool = False,
    limits: Steps | None = None,
    bold: str = "",
) -> Json:
    """Return a panel of lines over time; `bold` names the one that matters most."""
    custom: Json = {
        "drawStyle": "bars" if bars else "line",
        "lineInterpolation": "stepAfter" if steps else "linear",
        "lineWidth": 1,
        "fillOpacity": 60 if bars or stacked else 0,
        "gradientMode": "none",
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"group": "A", "mode": "normal" if stacked else "none"},
        "thresholdsStyle": {"mode": "dashed" if limits else "off"},
    }
    overrides = []
    if bold:
        properties = [{"id": "custom.lineWidth", "value": 3}]
        overrides.append({"matcher": {"id": "byName", "options": bold}, "properties": properties})
    options = {
        "legend": {
            "calcs": ["lastNotNull"],
            "displayMode": "table",
            "placement": "right",
            "showLegend": True,
        },
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    field = {"color": {"mode": "palette-classic"}, "custom": custom, "min": 0}
    shape = (width, height)
    return _panel("timeseries", title, meaning, queries, unit, field, options, limits, overrides, shape)


def stat(
    title: str,
    meaning: str,
    asked: Json,
    unit: str = "short",
    *,
    width: int = 3,
    limits: Steps | None = None,
    words: Mapping[int, tuple[str, str]] | None = None,
    name_only: bool = False,
    nothing: str = "none",
) -> Json:
    """Return a panel of one number; `words` are shown instead of numbers, each with a colour."""
    options = {
        "colorMode": "value",
        "graphMode": "none" if words or name_only else "area",
        "justifyMode": "auto",
        "orientation": "auto",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "textMode": "name" if name_only else "auto",
    }
    said = {
        str(number): {"color": color, "index": place, "text": text}
        for place, (number, (text, color)) in enumerate((words or {}).items())
    }
    field: Json = {"color": {"mode": "thresholds"}, "noValue": nothing}
    field["mappings"] = [{"type": "value", "options": said}] if said else []
    return _panel("stat", title, meaning, [asked], unit, field, options, limits, [], (width, 4))


def table(
    title: str,
    meaning: str,
    columns: Mapping[str, tuple[Json, str]],
    by: str,
    *,
    width: int = 12,
    height: int = 8,
) -> Json:
    """Return a panel with a line for each value of a label; columns have a name, a query and a unit."""
    names = list(columns)
    overrides = [
        {
            "matcher": {"id": "byName", "options": name},
            "properties": [{"id": "unit", "value": columns[name][1]}],
        }
        for name in names
    ]
    options = {"cellHeight": "sm", "showHeader": True, "sortBy": [{"desc": True, "displayName": names[0]}]}
    queries = [asked for asked, _ in columns.values()]
    field = {"color": {"mode": "thresholds"}, "custom": {"align": "auto", "filterable": False}}
    shape = (width, height)
    made = _panel("table", title, meaning, queries, "short", field, options, None, overrides, shape)
    values = {f"Value #{letter}": name for letter, name in zip("ABCDEF", names, strict=False)}
    order = {field: place for place, field in enumerate([by, *values])}
    organize = {"excludeByName": {"Time": True}, "indexByName": order, "renameByName": values}
    made["transformations"] = [{"id": "merge", "options": {}}, {"id": "organize", "options": organize}]
    return made


def row(title: str) -> Json:
    """Return a heading."""
    return {"type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": {"w": WIDTH, "h": 1}}


def placed(panels: Sequence[Json]) -> list[Json]:
    """Give panels numbers, and place them from left to right, line by line."""
    made, x, y, line = [], 0, 0, 0
    for number, panel in enumerate(panels, 1):
        width, height = panel["gridPos"]["w"], panel["gridPos"]["h"]
        if x + width > WIDTH:
            x, y, line = 0, y + line, 0
        made.append({"id": number, **panel, "gridPos": {"h": height, "w": width, "x": x, "y": y}})
        x, line = x + width, max(line, height)
    return made


def _panel(
    kind: str,
    title: str,
    meaning: str,
    queries: Sequence[Json],
    unit: str,
    field: Json,
    options: Json,
    limits: Steps | None,
    overrides: list[Json],
    shape: tuple[int, int],
) -> Json:
    families = {family.name: family for asked in queries for family in families_of(asked["expr"])}
    told = [f"- `{name}`: {family.meaning}" for name, family in families.items()]
    steps: list[Json] = [{"color": "green", "value": None}]
    steps += [{"color": color, "value": value} for value, color in (limits or {}).items()]
    defaults = {"mappings": [], "thresholds": {"mode": "absolute", "steps": steps}, "unit": unit} | field
    return {
        "type": kind,
        "title": title,
        "description": "\n".join([meaning, *(["", *told] if told else [])]),
        "datasource": DATASOURCE,
        "gridPos": {"w": shape[0], "h": shape[1]},
        "fieldConfig": {"defaults": defaults, "overrides": overrides},
        "options": options,
        "targets": [asked | {"refId": letter} for asked, letter in zip(queries, "ABCDEF", strict=False)],
    }
