"""``Warning`` headers: format, de-duplication and upstream's limits on their size."""

from __future__ import annotations

from collections.abc import Sequence

_TOTAL, _CUT = 4096, 256


def warning_headers(texts: Sequence[str]) -> list[tuple[bytes, bytes]]:
    unique = [text for text in dict.fromkeys(texts) if text and _printable(text)]
    if sum(map(len, unique)) > _TOTAL:
        unique = _truncated(unique)
    return [(b"warning", f'299 - "{_escaped(text)}"'.encode()) for text in unique]


def _printable(text: str) -> bool:
    return not any(ord(char) < 0x20 or ord(char) == 0x7F for char in text)


def _truncated(texts: Sequence[str]) -> list[str]:
    kept: list[str] = []
    total = 0
    for text in texts:
        if total >= _TOTAL:
            break
        kept.append(text[:_CUT])
        total += len(kept[-1])
    return kept


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
