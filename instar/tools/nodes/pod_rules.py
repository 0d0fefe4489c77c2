"""Rules by which pods on simulated nodes change their phase, read from YAML.

A rule names the pods it applies to, the phase before and after the change, and the delay. The first
rule that matches a pod is used; a pod that no rule matches keeps its phase. ``simulation.py`` calls
``rule_for`` after each change of a pod; ``pod_status.py`` builds the status of the new phase.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.cel.time_text import parse_duration

PHASES = ("Pending", "Running", "Succeeded", "Failed")
_END_PHASES = ("Succeeded", "Failed")
_MEMBERS = frozenset(
    ("ownerKind", "namespace", "labels", "phase", "then", "after", "ready", "exitCode", "reason")
)
DEFAULT_RULES = """\
- {ownerKind: Job, phase: Running, then: Succeeded, after: 1s}
- {phase: Pending, then: Running, after: 200ms}
"""


class RuleError(ValueError):
    """An invalid rule; the message says which one and why."""


@dataclass(frozen=True, kw_only=True)
class PodRule:
    """One rule."""

    then: str
    phase: str = "Pending"
    seconds: float = 0.0
    owner_kind: str = ""
    namespace: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    ready: bool = True
    exit_code: int = 0
    reason: str = ""

    def fits(self, pod: Object) -> bool:
        metadata = pod["metadata"]
        if phase_of(pod) != self.phase:
            return False
        if self.namespace and metadata.get("namespace") != self.namespace:
            return False
        owners = {owner.get("kind") for owner in metadata.get("ownerReferences") or ()}
        if self.owner_kind and self.owner_kind not in owners:
            return False
        labels = metadata.get("labels") or {}
        return all(labels.get(name) == value for name, value in self.labels)


def phase_of(pod: Object) -> str:
    return (pod.get("status") or {}).get("phase") or "Pending"


def rule_for(pod: Object, rules: Sequence[PodRule]) -> PodRule | None:
    """Return the first rule that matches; None for a pod that is being deleted."""
    if pod["metadata"].get("deletionTimestamp"):
        return None
    return next((rule for rule in rules if rule.fits(pod)), None)


def read_rules(document: Any) -> tuple[PodRule, ...]:
    """Return the rules of a parsed YAML list. Raises ``RuleError``."""
    if not isinstance(document, list):
        raise RuleError("expected a list of rules")
    return tuple(_rule(number, item) for number, item in enumerate(document, 1))


def _rule(number: int, item: Any) -> PodRule:
    if not isinstance(item, dict):
        raise RuleError(f"rule {number}: expected a mapping")
    unknown = sorted(str(name) for name in item.keys() - _MEMBERS)
    if unknown:
        raise RuleError(f"rule {number}: unknown field {unknown[0]}")
    phase, then = _phases(number, item)
    after = parse_duration(str(item.get("after", "0s")))
    if after is None or after < 0:
        raise RuleError(f"rule {number}: after must be a duration such as 500ms or 2s")
    labels, ready = item.get("labels") or {}, item.get("ready", True)
    if not isinstance(labels, dict):
        raise RuleError(f"rule {number}: labels must be a mapping")
    if not isinstance(ready, bool):
        raise RuleError(f"rule {number}: ready must be true or false")
    return PodRule(
        then=then,
        phase=phase,
        seconds=after / 1e9,
        owner_kind=str(item.get("ownerKind") or ""),
        namespace=str(item.get("namespace") or ""),
        labels=tuple((str(name), str(value)) for name, value in labels.items()),
        ready=ready,
        exit_code=_exit_code(number, item, then),
        reason=str(item.get("reason") or ""),
    )


def _phases(number: int, item: Object) -> tuple[str, str]:
    phase, then = item.get("phase", "Pending"), item.get("then")
    for name, value in (("phase", phase), ("then", then)):
        if value not in PHASES:
            raise RuleError(f"rule {number}: {name} must be one of {', '.join(PHASES)}")
    if phase in _END_PHASES or phase == then or then == "Pending":
        raise RuleError(f"rule {number}: a pod does not go from {phase} to {then}")
    return str(phase), str(then)


def _exit_code(number: int, item: Object, then: str) -> int:
    code = item.get("exitCode", 1 if then == "Failed" else 0)
    if type(code) is not int or not 0 <= code <= 255:
        raise RuleError(f"rule {number}: exitCode must be a number from 0 to 255")
    return code
