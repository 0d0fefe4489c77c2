"""One thing to send: bytes as they go over the wire, and what may be expected to come back.

A case is kept in a file as readable text; what only a server knows stands in it as a word
(``placeholders.py``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Case:
    data: bytes
    answers: int = 1
    """How many must come; 0 where the framing is broken and none may."""

    @property
    def method(self) -> bytes:
        return self.data.partition(b" ")[0]


def request(
    method: str, target: str, headers: Sequence[tuple[str, str]], body: bytes | None
) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join(lines).encode("utf-8", "surrogatepass")
    return head + b"\r\n\r\n" + (body or b"")


@dataclass(frozen=True, slots=True)
class Found:
    """What hurt a server, as small as it could be made."""

    trouble: str
    cases: tuple[Case, ...]
    mode: str = "memory"
    seed: int = 0
    """Of the run that found it."""

    def kept(self, folder: Path) -> Path:
        told = [
            {"answers": case.answers, "data": case.data.decode("latin-1")} for case in self.cases
        ]
        kept = {"trouble": self.trouble, "mode": self.mode, "seed": self.seed, "cases": told}
        text = json.dumps(kept, indent=1)
        name = hashlib.sha256(text.encode()).hexdigest()[:12]
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.json"
        path.write_text(text + "\n")
        return path


def read(path: Path) -> Found:
    told = json.loads(path.read_text())
    cases = (Case(one["data"].encode("latin-1"), one["answers"]) for one in told["cases"])
    return Found(told["trouble"], tuple(cases), told.get("mode", "memory"), told.get("seed", 0))
