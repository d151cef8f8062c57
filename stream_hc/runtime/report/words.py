"""The words that count most at each topic, for and against it."""

from collections.abc import Mapping, Sequence

from stream_hc.runtime.report.page import name, section, table

__all__ = ["Words", "words_section"]

AT_ONCE = 15  # topics; the others unfold

Words = Mapping[str, Sequence[tuple[str, float]]]  # of a topic: (word, weight), the strongest first


def words_section(words: Words, model: str, n_left_out: int = 0) -> str:
    """Return the section on words; `n_left_out` topics are not among them."""
    lead = f"The strongest weights of {name(model)}: words for a topic, and struck through those against it."
    if not words:
        said = '<p class="none">None: nothing was learned yet.</p>'
        return section("h-words", "Words", f'<p class="lead">{lead}</p>', said)
    rows = [[name(topic), " ".join(_word(*pair) for pair in pairs)] for topic, pairs in words.items()]
    heads = [("Topic", "of-words"), ("Words", "")]
    parts = [table("Strongest first", heads, rows[:AT_ONCE])]
    if rows[AT_ONCE:]:
        left_out = f"; {n_left_out:,} topics left out" if n_left_out else ""
        more = table(f"Strongest first{left_out}", heads, rows[AT_ONCE:])
        parts.append(f"<details><summary>{len(rows[AT_ONCE:]):,} more topics</summary>\n{more}\n</details>")
    return section("h-words", "Words", f'<p class="lead">{lead}</p>', *parts)


def _word(word: str, weight: float) -> str:
    tag = "span" if weight > 0 else "del"
    return f'<{tag} class="word" title="{weight:+.3f}">{name(word)}</{tag}>'
