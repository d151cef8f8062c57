"""What somebody may have meant by a name that is not known."""

from difflib import get_close_matches

from stream_hc.runtime.config.keys import KEYS, TABLES, Key

__all__ = ["did_you_mean", "known_keys", "near_keys", "nearest", "nearest_table"]


def nearest(path: tuple[str, ...]) -> str:
    """Return the remedy for an unknown key: the nearest one of its table, or of another."""
    table, name = path[0], path[-1]
    if table not in TABLES:
        return nearest_table(table)
    near = near_keys(table, name) or [key for key in KEYS.values() if key.field == name]
    return did_you_mean([key.name for key in near]) or known_keys(table)


def near_keys(table: str, name: str) -> list[Key]:
    """Return the key of a table whose name is nearest, if one is near."""
    own = {key.field.lower(): key for key in KEYS.values() if key.table == table}
    return [own[near] for near in get_close_matches(name.lower(), own, 1)]


def known_keys(table: str) -> str:
    """Name all keys of a table."""
    fields = ", ".join(key.field for key in KEYS.values() if key.table == table)
    return f"the keys of [{table}] are {fields}"


def nearest_table(name: str) -> str:
    """Return the remedy for an unknown name outside of all tables."""
    tables = [f"[{table}]" for table in get_close_matches(name.lower(), TABLES, 1)]
    near = get_close_matches(name, {key.field for key in KEYS.values()}, 1, 0.8)
    keys = [key.name for key in KEYS.values() if key.field in near]
    return did_you_mean(tables or keys) or f"the tables are {', '.join(TABLES)}"


def did_you_mean(names: list[str]) -> str:
    """Ask for one of these names; nothing if there are none."""
    return f"did you mean {' or '.join(names)}?" if names else ""
