"""Fits a Markdown report into a GitHub comment: sections by priority, and a last line that counts
the items that were left out.

The renderers ``reviewer/render/markdown.py`` and ``rehearsal/render/markdown.py`` describe their
report as sections; ``fit`` decides which items stay. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from instar.base.fast_dataclass import dataclass
from instar.base.plurals import counted

COMMENT = 65_536
"""Maximum characters of a GitHub comment."""
SUMMARY = 1_000_000
"""Most characters of a job summary on GitHub, which takes 1 MiB."""
_FOOTER = 400
"""Characters that are reserved for the last line."""


@dataclass(frozen=True, slots=True)
class Section:
    """A group of items shown together. An item that does not fit is left out; the others stay."""

    items: tuple[tuple[str, ...], ...]
    """Each item is some lines: a table row, a fold."""
    noun: str
    """What one item is, for the count of what was left out."""
    priority: int
    """Smaller numbers get their room first."""
    opening: tuple[str, ...] = ()
    """Lines above the first item, such as a table's head; only with at least one item."""
    closing: tuple[str, ...] = ()
    weights: tuple[int, ...] = ()
    """How many findings each item stands for; one where this is empty."""


def fit(sections: Sequence[Section], most: int = COMMENT, whole: str = "") -> str:
    """Return the text of all sections, in their order, within ``most`` characters. ``whole`` is the
    sentence about the complete report that a shortened report ends with.
    """
    room = most - _FOOTER - length(whole)
    kept: dict[int, list[tuple[str, ...]]] = {}
    left_out: Counter[str] = Counter()
    for number in sorted(range(len(sections)), key=lambda each: sections[each].priority):
        section = sections[number]
        frame = _cost(section.opening) + _cost(section.closing)
        weights = section.weights or (1,) * len(section.items)
        for item, weight in zip(section.items, weights, strict=True):
            cost = _cost(item) + (0 if number in kept else frame)
            if cost > room:
                left_out[section.noun] += weight
                continue
            room -= cost
            kept.setdefault(number, []).append(item)
    lines: list[str] = []
    for number, items in sorted(kept.items()):
        lines += sections[number].opening
        lines += [line for item in items for line in item]
        lines += sections[number].closing
    if left_out:
        lines += ["", _footer(sections, left_out, whole)]
    return "\n".join(lines).rstrip() + "\n"


def _footer(sections: Sequence[Section], left_out: Counter[str], whole: str) -> str:
    nouns = dict.fromkeys(
        section.noun for section in sorted(sections, key=lambda each: each.priority)
    )
    named = ", ".join(counted(left_out[noun], noun) for noun in nouns if left_out[noun])
    where = whole or "Run the command with `-o html=FILE` for the whole report."
    return f"**Shortened to fit into a comment.** Left out: {named}. {where}"


def length(text: str) -> int:
    """Return the length as GitHub counts it: in UTF-16 units, so that an emoji is two."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _cost(lines: Sequence[str]) -> int:
    return sum(length(line) + 1 for line in lines)
