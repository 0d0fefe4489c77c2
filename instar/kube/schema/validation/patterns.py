"""Regular expressions of schemas: RE2 syntax, unanchored search, cached by text.

Called by ``scalars.py`` and ``structure/structural_rules.py``. Error messages of the RE2 binding
are reworded to Go's, which clients of kube-apiserver know.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import re2

from instar.base.weighted_lru import WeightedLru

_GO_WORDING = {
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "invalid named capture group": "invalid named capture",
}


_PROGRAM, _CHARACTER = 16 << 10, 256
"""Approximate bytes of a compiled expression, most of them allocated at its first search."""
_SHORT = 64
"""Length of texts for which the result of a search is cached."""
_KEPT: WeightedLru[str, Callable[[str], bool]] = WeightedLru(16 << 20)
"""Shared by versions and CRDs with equal patterns; a compiled schema keeps its own anyway."""


class PatternError(ValueError):
    """The text is not a regular expression; the message is Go's."""


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Return a function that tells whether the pattern occurs in a text."""
    known = _KEPT.get(pattern)
    if known is None:
        known = _KEPT.put(pattern, _compile_cached(pattern), _PROGRAM + _CHARACTER * len(pattern))
    return known


def _compile_cached(pattern: str) -> Callable[[str], bool]:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        # Compiled from bytes, the binding skips translating offsets, which halves a search.
        search = re2.compile(pattern.encode("utf-8", "replace"), options).search
    except re2.error as error:
        raise PatternError(_go_text(error)) from None

    def occurs(text: str) -> bool:
        return _known(search, text) if len(text) <= _SHORT else _occurs(search, text)

    return occurs


def _occurs(search: Callable[[bytes], object], text: str) -> bool:
    return search(text.encode("utf-8", "replace")) is not None


_known = lru_cache(maxsize=4096)(_occurs)
"""Caches searches: objects of a kind repeat the same values, and searching costs more than all
other checks."""


def _go_text(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    if text.startswith("trailing \\"):
        return "error parsing regexp: trailing backslash at end of expression: ``"
    reason, colon, where = text.partition(": ")
    shown = f": `{where}`" if colon else ""
    return f"error parsing regexp: {_GO_WORDING.get(reason, reason)}{shown}"
