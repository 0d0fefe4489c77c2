"""How far all runs of the fuzzer are together: requests and seeds by mode, in a file.

A run adds what it sent when a round ends, so that one that is killed loses a round at most.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class State:
    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._told: dict[str, Any] = {}
        if path is not None and path.exists():
            self._told = json.loads(path.read_text())

    def sent(self, mode: str) -> int:
        return int(self._told.get(mode, {}).get("requests", 0))

    @property
    def total(self) -> int:
        return sum(self.sent(mode) for mode in self._told)

    def next_mode(self, modes: tuple[str, ...]) -> str:
        """The one that was asked least so far."""
        return min(modes, key=self.sent)

    def add(self, mode: str, seed: int, requests: int, found: list[str]) -> None:
        kept = self._told.setdefault(mode, {"requests": 0, "runs": []})
        kept["requests"] += requests
        kept["runs"].append({"seed": seed, "requests": requests, "found": found})
        if self._path is not None:
            new = self._path.with_suffix(".new")
            new.write_text(json.dumps(self._told, indent=1) + "\n")
            new.replace(self._path)
