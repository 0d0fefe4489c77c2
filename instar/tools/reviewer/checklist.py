"""The review checklist: questions answered yes or no, with the basis of each answer. Pure.

``reviewing.py`` attaches it to the review of a CRD; renderers print it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from instar.base.plurals import counted
from instar.tools.reviewer.changes import value_path
from instar.tools.reviewer.report import (
    ChecklistAnswer,
    Finding,
    Hit,
    PlanStep,
    Severity,
    StoredObject,
)
from instar.tools.reviewer.reviewed_crd import ReviewedCrd
from instar.tools.reviewer.rule_groups import FIELD_REMOVALS, VERSION_REMOVALS
from instar.tools.reviewer.rules import converting, lints


def checklist(
    old: ReviewedCrd | None,
    new: ReviewedCrd,
    findings: Sequence[Finding],
    steps: Sequence[PlanStep],
    stored: Sequence[StoredObject] = (),
    tried: int = 0,
) -> tuple[ChecklistAnswer, ...]:
    return tuple(_answers(old, new, findings, steps, stored, tried))


def _answers(
    old: ReviewedCrd | None,
    new: ReviewedCrd,
    findings: Sequence[Finding],
    steps: Sequence[PlanStep],
    stored: Sequence[StoredObject],
    tried: int,
) -> Iterator[ChecklistAnswer]:
    if old is not None:
        safe = _safe(findings, stored, tried)
        yield safe
        yield _planned(safe.yes, steps)
        yield _announced(old, findings)
        yield _storage(findings, steps)
    yield _convertible(new)
    yield _pruned(new)


def _safe(
    findings: Sequence[Finding], stored: Sequence[StoredObject], tried: int
) -> ChecklistAnswer:
    question = "Is this change safe for existing stored objects?"
    broken = [item for item in stored if item.breaks]
    if tried:
        text = f"{len(broken)} of {counted(tried, 'object')} would break"
        return ChecklistAnswer(question, not broken, text)
    found = [
        item for item in findings if item.severity is Severity.ERROR and Hit.STORED in item.hits
    ]
    if not found:
        return ChecklistAnswer(question, True, "no finding reaches stored objects")
    rules = ", ".join(sorted({item.rule for item in found}))
    return ChecklistAnswer(question, False, f"{counted(len(found), 'finding')} for them: {rules}")


def _planned(safe: bool, steps: Sequence[PlanStep]) -> ChecklistAnswer:
    question = "If not, is there an explicit migration plan?"
    if safe and not steps:
        return ChecklistAnswer(question, True, "none is needed")
    text = f"{counted(len(steps), 'step')} below" if steps else "no step was found"
    return ChecklistAnswer(question, bool(steps), text)


def _announced(old: ReviewedCrd, findings: Sequence[Finding]) -> ChecklistAnswer:
    """Return whether everything that is removed was deprecated in the release before."""
    question = "Are rollout steps and communication/deprecation steps defined?"
    silent = []
    for item in findings:
        if item.rule in VERSION_REMOVALS and item.severity is Severity.ERROR:
            version = old.crd.version(item.version)
            if version is not None and not version.deprecated:
                silent.append(f"{item.version} was never marked deprecated")
        if item.rule in FIELD_REMOVALS and not _says_deprecated(old, item):
            silent.append(f"{item.path} ({item.version}) never said that it is deprecated")
    if not silent:
        return ChecklistAnswer(question, True, "nothing leaves unannounced")
    more = f" and {len(silent) - 3} more" if len(silent) > 3 else ""
    return ChecklistAnswer(question, False, "; ".join(silent[:3]) + more)


def _says_deprecated(old: ReviewedCrd, finding: Finding) -> bool:
    steps = tuple(str(token) for token in finding.pointer[5:])
    node: object = old.schemas.get(finding.version)
    for step in steps:
        node = node.get(step) if isinstance(node, dict) else None
    text = node.get("description", "") if isinstance(node, dict) else ""
    return value_path(steps) == finding.path and "deprecated" in str(text).lower()


def _storage(findings: Sequence[Finding], steps: Sequence[PlanStep]) -> ChecklistAnswer:
    question = "Does a change of the storage version come with a plan for stored objects?"
    flips = [item for item in findings if item.rule == "storage-version-changed"]
    if not flips:
        return ChecklistAnswer(question, True, "the storage version stays")
    planned = any(step.rewrites for step in steps)
    return ChecklistAnswer(
        question, planned, "see the plan" if planned else "nothing rewrites them"
    )


def _convertible(new: ReviewedCrd) -> ChecklistAnswer:
    question = "Is conversion correct in both directions for all served versions?"
    served = new.crd.served()
    if len(new.crd.versions) == 1:
        return ChecklistAnswer(question, True, "there is only one version")
    if new.crd.conversion.strategy == "Webhook":
        text = "a webhook decides; prove it with: instar check --crd crd.yaml"
        return ChecklistAnswer(question, False, text)
    lost = [
        draft for draft in converting.version_pairs(new) if draft.rule == "conversion-none-loses"
    ]
    if lost:
        places = ", ".join(sorted({draft.path for draft in lost})[:4])
        return ChecklistAnswer(question, False, f"strategy None drops {places}")
    return ChecklistAnswer(
        question, True, f"strategy None loses no field between {', '.join(served)}"
    )


def _pruned(new: ReviewedCrd) -> ChecklistAnswer:
    question = "Is every field described, so that unknown ones are pruned?"
    open_places = [
        draft.path or "the root"
        for lint in lints.LINTS
        for draft in lint(new)
        if draft.rule in ("unpruned-crd", "open-root", "open-field", "open-embedded-resource")
    ]
    if not open_places:
        return ChecklistAnswer(question, True, "nothing keeps unknown fields")
    unique = sorted(set(open_places))
    more = f" and {len(unique) - 3} more" if len(unique) > 3 else ""
    return ChecklistAnswer(
        question, False, f"unknown fields are kept at {', '.join(unique[:3])}{more}"
    )
