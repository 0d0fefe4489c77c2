"""Result of a check as plain values; ``search.py`` makes it, ``render.py`` prints it."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from instar.base.fast_dataclass import dataclass
from instar.tools.sdk.ruleset import Loss

Verdict = Literal["kept", "broken", "unchecked"]


@dataclass(frozen=True, slots=True)
class Counterexample:
    """An object that breaks a law, with the conversions that show it."""

    message: str
    inputs: list[dict[str, Any]]
    steps: list[tuple[str, Any]]
    found: list[str]


@dataclass(frozen=True, slots=True)
class LawResult:
    """Result of one law in one direction. ``examples`` counts the objects that tested it."""

    law: str
    title: str
    source: str
    target: str
    examples: int
    seconds: float
    counterexample: Counterexample | None = None
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        if self.counterexample is not None:
            return "broken"
        return "kept" if self.examples else "unchecked"


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Result of ``instar check``."""

    crd: str
    converter: str
    seed: int
    outcomes: list[LawResult] = field(default_factory=list)
    losses: tuple[Loss, ...] = ()

    @property
    def broken(self) -> list[LawResult]:
        return [outcome for outcome in self.outcomes if outcome.verdict == "broken"]

    @property
    def unchecked(self) -> list[LawResult]:
        return [outcome for outcome in self.outcomes if outcome.verdict == "unchecked"]

    @property
    def exit_code(self) -> int:
        """Return 0 without counterexamples, 1 with at least one, 2 if something could not be
        checked.
        """
        if self.broken:
            return 1
        return 2 if self.unchecked or not self.outcomes else 0
