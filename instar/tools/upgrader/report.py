"""The report of an upgrade, as text and as JSON.

``upgrade.py`` makes it; ``instar upgrade`` prints it.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object


class StepState(StrEnum):
    """What became of one step of an upgrade."""

    DONE = "done"
    NOTHING = "nothing to do"
    PLANNED = "would be done"
    REFUSED = "refused"
    FAILED = "failed"
    TAKEN_BACK = "taken back"


@dataclass(frozen=True, slots=True)
class UpgradeStep:
    """One step of an upgrade with its state."""

    name: str
    state: StepState
    text: str = ""
    lines: tuple[str, ...] = ()


@dataclass
class CrdUpgrade:
    """The steps of one CRD."""

    name: str
    steps: list[UpgradeStep] = field(default_factory=list)
    migration: Object | None = None
    unchanged: bool = False
    """The server says that applying would change nothing."""

    def add(self, name: str, state: StepState, text: str = "", lines: tuple[str, ...] = ()) -> None:
        self.steps.append(UpgradeStep(name, state, text, lines))

    @property
    def ok(self) -> bool:
        bad = (StepState.REFUSED, StepState.FAILED, StepState.TAKEN_BACK)
        return not any(step.state in bad for step in self.steps)


@dataclass
class UpgradeReport:
    """Result of an upgrade."""

    server: str
    crds: list[CrdUpgrade] = field(default_factory=list)
    refused: str = ""
    """Why nothing was written at all."""

    @property
    def ok(self) -> bool:
        return not self.refused and all(crd.ok for crd in self.crds)

    def lines(self) -> list[str]:
        out = [f"upgrade of {self.server}"]
        for crd in self.crds:
            out.append(crd.name)
            for step in crd.steps:
                text = f": {step.text}" if step.text else ""
                out.append(f"  {step.name}: {step.state}{text}")
                out += [f"    {line}" for line in step.lines]
        if self.refused:
            out.append(f"Nothing was changed: {self.refused}")
        return out

    def to_json(self) -> Object:
        return {
            "server": self.server,
            "ok": self.ok,
            "refused": self.refused,
            "crds": [
                {
                    "name": crd.name,
                    "ok": crd.ok,
                    "steps": [
                        {"step": s.name, "state": s.state, "text": s.text, "lines": list(s.lines)}
                        for s in crd.steps
                    ],
                    "migration": crd.migration,
                }
                for crd in self.crds
            ],
        }
