"""From edges as a person writes them to nodes in column order, and what can be wrong on the way."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["Edge", "TaxonomyError", "find_problems", "looks_sound", "order_nodes"]

Edge = tuple[str, str | None]


class TaxonomyError(ValueError):
    """The edges do not make a taxonomy, or a label is not in it."""


def find_problems(edges: Iterable[Any]) -> list[str]:
    """Say everything that is wrong with the edges, one sentence each; an empty list means nothing is."""
    problems: list[str] = []
    parents: dict[str, list[str]] = {}
    counts: Counter[Edge] = Counter()
    for position, edge in enumerate(edges, start=1):
        if not isinstance(edge, tuple | list) or len(edge) != 2:
            problems.append(f"edge {position} is {edge!r}, not a pair (child, parent)")
            continue
        child, parent = edge
        wrong = _name_problem(child) or (None if parent is None else _name_problem(parent))
        if wrong:
            problems.append(f"edge {position} {edge!r}: {wrong}")
            continue
        counts[(child, parent)] += 1
        above = parents.setdefault(child, [])
        if parent is not None:
            above.append(parent)
    for (child, parent), count in counts.items():
        where = "as a root" if parent is None else f"under {parent!r}"
        if count > 1:
            problems.append(f"node {child!r} is listed {count} times {where}")
        if parent is None and parents[child]:
            problems.append(f"node {child!r} is listed as a root and under {parents[child][0]!r}")
        if parent is not None and parent not in parents:
            problems.append(f"node {child!r} has the unknown parent {parent!r}")
    cycle = _find_cycle(parents)
    if cycle:
        problems.append("the nodes form a cycle: " + " -> ".join(map(repr, cycle)))
    return problems


def order_nodes(edges: Iterable[Edge]) -> dict[str, list[str]]:
    """Map each node to its parents, parents before children and siblings next to each other.

    The order is by depth (longest path from a root), then by the place of the first parent at the depth
    above, then as given. In a forest that is breadth first, so that all children of a node are neighbours.
    """
    edges = edges.tolist() if isinstance(edges, np.ndarray) else edges
    edges = [tuple(edge) if isinstance(edge, list) else edge for edge in edges]
    parents: dict[str, list[str]] = {}
    children: dict[str, list[str]] = {}
    if not looks_sound(edges):
        raise _first_of(find_problems(edges))
    for child, parent in edges:
        above = parents.setdefault(child, [])
        if parent is not None:
            above.append(parent)
            children.setdefault(parent, []).append(child)
    waiting_for = {node: len(above) for node, above in parents.items()}
    level = [node for node, count in waiting_for.items() if count == 0]
    ordered: list[str] = []
    while level:
        ordered += level
        below = [child for node in level for child in children.get(node, ())]
        level = []
        for child in below:
            waiting_for[child] -= 1
        for child in below:
            # The last parent to be placed frees the child; -1 keeps it from being freed twice.
            if waiting_for[child] == 0:
                waiting_for[child] = -1
                level.append(child)
    if len(ordered) < len(parents) or not parents.keys() >= children.keys():
        raise _first_of(find_problems(edges))
    return {node: parents[node] for node in ordered}


def looks_sound(edges: list[Edge]) -> bool:
    """Check at C speed what `find_problems` explains slowly; cycles and unknown parents show up later."""
    try:
        names = {child for child, _ in edges}
        roots = {child for child, parent in edges if parent is None}
        below = {child for child, parent in edges if parent is not None}
        "".join(names).encode()
        distinct = set(edges)
    except (TypeError, ValueError):
        return False
    return len(distinct) == len(edges) and roots.isdisjoint(below) and all(map(str.strip, names))


def _first_of(problems: list[str]) -> TaxonomyError:
    more = f" (and {len(problems) - 1} more problems)" if len(problems) > 1 else ""
    return TaxonomyError(problems[0] + more)


def _name_problem(name: object) -> str | None:
    if not isinstance(name, str):
        return f"a name must be a str, not {type(name).__name__}"
    if not name.strip():
        return "a name must not be empty (write None for the parent of a root)"
    try:
        name.encode()
    except UnicodeEncodeError:
        return "a name must be valid Unicode"
    return None


def _find_cycle(parents: dict[str, list[str]]) -> list[str]:
    """Return the nodes of one cycle, the first one repeated at the end, or an empty list."""
    done: set[str] = set()
    for start in parents:
        path: dict[str, None] = {}
        climbing = [(start, False)]
        while climbing:
            node, leaving = climbing.pop()
            if leaving:
                done.add(node)
                del path[node]
            elif node in path:
                nodes = list(path)
                return [*nodes[nodes.index(node) :], node][::-1]
            elif node not in done and node in parents:
                path[node] = None
                climbing.append((node, True))
                climbing += [(parent, False) for parent in parents[node]]
    return []
