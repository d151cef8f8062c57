"""A taxonomy as text, one node a line."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stream_hc.taxonomy.taxonomy import Taxonomy

__all__ = ["draw"]


def draw(taxonomy: "Taxonomy", max_depth: int | None = None) -> str:
    """Draw the taxonomy; in a DAG a node stands under each parent, what is below it only the first time.

    >>> from stream_hc import Taxonomy
    >>> print(draw(Taxonomy([("sport", None), ("football", "sport"), ("tennis", "sport")])))
    sport
    ├── football
    └── tennis
    """
    lines: list[str] = []
    drawn: set[int] = set()
    # A stack, not recursion: a chain may be longer than Python's limit.
    # Entries: node, what stands before it, what stands before its children, its level.
    waiting = [(int(root), "", "", 0) for root in taxonomy.roots[::-1]]
    while waiting:
        node, lead, lead_below, level = waiting.pop()
        children = taxonomy.children(node)
        cut = max_depth is not None and level >= max_depth and children.size > 0
        again = node in drawn and children.size > 0
        drawn.add(node)
        below = taxonomy.subtree(node).size - 1 if cut else 0
        note = " (see above)" if again else f" … {below} more" if cut else ""
        lines.append(f"{lead}{_printable(taxonomy.nodes[node])}{note}")
        if again or cut:
            continue
        for child in children[::-1].tolist():
            last = child == children[-1]
            branch, rail = ("└── ", "    ") if last else ("├── ", "│   ")
            waiting.append((child, lead_below + branch, lead_below + rail, level + 1))
    return "\n".join(lines)


def _printable(name: str) -> str:
    """Show control characters as escapes: a name must not move the cursor or break the picture."""
    return name if name.isprintable() else repr(name)[1:-1]
