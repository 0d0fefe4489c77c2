"""``Warning`` headers of responses: format, de-duplication, and kube-apiserver's size limits.

``server/app.py`` adds them to each response with warnings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

_TOTAL_LENGTH, _CUT_LENGTH = 4096, 256
"""If all warnings together are longer than the first number, each is cut to the second."""
_MOST_WARNINGS = _TOTAL_LENGTH + 1
"""More warnings than this exceed the total size in any case."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def warning_headers(texts: Sequence[str]) -> list[tuple[bytes, bytes]]:
    unique = list(
        islice((text for text in dict.fromkeys(texts) if _printable(text)), _MOST_WARNINGS)
    )
    if sum(map(len, unique)) > _TOTAL_LENGTH:
        unique = _truncated(unique)
    return [(b"warning", f'299 - "{_escaped(text)}"'.encode()) for text in unique]


def _printable(text: str) -> bool:
    return bool(text) and _CONTROL.search(text) is None


def _truncated(texts: Sequence[str]) -> list[str]:
    kept: list[str] = []
    total = 0
    for text in texts:
        if total >= _TOTAL_LENGTH:
            break
        kept.append(text[:_CUT_LENGTH])
        total += len(kept[-1])
    return kept


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
