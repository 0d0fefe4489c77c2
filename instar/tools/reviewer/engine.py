"""Runs every rule over a pair of CRDs (or one alone) and turns the results into findings.

``reviewing.py`` calls it. It compares the whole CRDs, then each common version node by node, then
runs lints (without those that the old CRD already had), then reports changes that no rule covers.
The caller passes in the function that finds an example object for a finding
(``witnesses/search.py``), so this module validates no object itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import child
from instar.tools.reviewer.changes import NodeChange, changes
from instar.tools.reviewer.implied_metadata import align_metadata
from instar.tools.reviewer.renames import Rename, new_place, renames
from instar.tools.reviewer.report import (
    Effect,
    Finding,
    Hit,
    NoWitness,
    Severity,
    Witness,
    sort_findings,
)
from instar.tools.reviewer.reviewed_crd import ReviewedCrd
from instar.tools.reviewer.rule_kit import FindingDraft, Probe
from instar.tools.reviewer.rules import BY_ID, CRD_CHECKS, LINTS, NODE_CHECKS
from instar.tools.reviewer.rules.lints import validation_errors
from instar.tools.reviewer.rules.types import VALUE_KEYWORDS
from instar.tools.reviewer.types import compatible_types
from instar.tools.reviewer.unchecked import crd_changes

Evidence = Callable[[Probe], Witness | NoWitness]
"""Returns a witness, or why there is none."""


@dataclass(frozen=True, kw_only=True)
class ReviewOptions:
    """``severities`` override those of the rules; ``all`` also reports lints that the old CRD
    already had.

    ``ask_server`` runs the server's own validation of CRDs, which a server does not need twice.
    """

    severities: Mapping[str, Severity] = field(default_factory=dict)
    all: bool = False
    ask_server: bool = True


def find(
    old: ReviewedCrd | None,
    new: ReviewedCrd,
    options: ReviewOptions,
    evidence: Evidence | None = None,
) -> tuple[Finding, ...]:
    """Return every finding about one CRD, sorted, without disabled rules."""
    # CEL witnesses take longest, so all others are searched first
    drafts = sorted(_drafts(old, new, options), key=_is_cel)
    findings: dict[str, Finding] = {}
    for draft in drafts:
        finding = _finding(draft, new, options, evidence)
        if finding is not None:
            findings.setdefault(finding.fingerprint, finding)
    return sort_findings(findings.values())


def _is_cel(draft: FindingDraft) -> bool:
    return draft.probe is not None and "x-kubernetes-validations" in draft.probe.keywords


def _drafts(
    old: ReviewedCrd | None, new: ReviewedCrd, options: ReviewOptions
) -> Iterator[FindingDraft]:
    align_metadata(old, new)
    if options.ask_server:
        yield from validation_errors(old, new)
    if old is not None:
        for check in CRD_CHECKS:
            yield from check.run(old, new)
        yield from crd_changes(old, new, CRD_CHECKS)
        for version in new.crd.versions:
            if old.crd.version(version.name) is not None:
                yield from _same_version(old, new, version.name)
    yield from _lints(old, new, options)


def _lints(
    old: ReviewedCrd | None, new: ReviewedCrd, options: ReviewOptions
) -> Iterator[FindingDraft]:
    known: set[tuple[str, str, str, str]] = set()
    if old is not None and not options.all:
        known = {_identity(draft) for lint in LINTS for draft in lint(old)}
    for lint in LINTS:
        yield from (draft for draft in lint(new) if _identity(draft) not in known)


def _identity(draft: FindingDraft) -> tuple[str, str, str, str]:
    return draft.rule, draft.version, draft.path, draft.key


def _same_version(old: ReviewedCrd, new: ReviewedCrd, version: str) -> Iterator[FindingDraft]:
    found = changes(old.schemas[version], new.schemas[version])
    pairs = renames(found)
    consumed = {pair.gone.steps for pair in pairs} | {pair.came for pair in pairs}
    for pair in pairs:
        yield _renamed(old, version, pair)
    for change in found:
        if change.steps in consumed and (change.old is None or change.new is None):
            continue
        for draft in _node_drafts(change):
            yield _placed(draft, change, old, new, version)


def _renamed(old: ReviewedCrd, version: str, pair: Rename) -> FindingDraft:
    name = pair.came[-1]
    said = f"moved to {new_place(pair)}" if pair.moved else f"renamed to {name}"
    return FindingDraft(
        rule="field-moved" if pair.moved else "field-renamed",
        version=version,
        path=pair.gone.path,
        key=new_place(pair),
        pointer=old.schema_pointer(version, pair.gone.steps),
        on_old=True,
        message=f"{pair.gone.name} was {said}: stored values are pruned, they do not move along",
        probe=Probe(Effect.PRUNED, version, pair.gone.steps),
    )


def _node_drafts(change: NodeChange) -> Iterator[FindingDraft]:
    exists = change.old is not None and change.new is not None
    retyped = (
        change.old is not None
        and change.new is not None
        and not compatible_types(change.old, change.new)
    )
    open_keywords = set(change.keywords) - (VALUE_KEYWORDS if retyped else set())
    left = set(open_keywords)
    for check in NODE_CHECKS:
        if exists and not check.keywords & open_keywords:
            continue
        left -= check.keywords
        for draft in check.run(change):
            touched = check.keywords & change.keywords
            limited = exists and bool((change.old or {}).get("enum"))
            yield replace(
                draft,
                probe=_probe(draft, change, touched),
                unsure=draft.unsure or (limited and "enum" not in touched),
            )
    if exists and left:
        yield FindingDraft(
            rule="unclaimed-change",
            key=",".join(sorted(left)),
            message=f"{', '.join(sorted(left))} changed",
            why_no_witness="no rule knows what it means",
        )
    elif not exists and not change.is_property and change.steps[-1] == "items":
        yield FindingDraft(rule="unclaimed-change", key="items", message="items came or went")


def _probe(draft: FindingDraft, change: NodeChange, touched: frozenset[str]) -> Probe | None:
    if draft.effect is None:
        return None
    return Probe(
        draft.effect,
        steps=change.steps,
        keywords=touched,
        expression=draft.expression,
        members=draft.members,
    )


def _placed(
    draft: FindingDraft, change: NodeChange, old: ReviewedCrd, new: ReviewedCrd, version: str
) -> FindingDraft:
    side = old if draft.on_old else new
    after = new.crd.version(version)
    served = after is not None and after.served
    keyword = tuple(draft.probe.keywords) if draft.probe is not None else ()
    placed = replace(
        draft,
        version=version,
        path=child(change.path, draft.path) if draft.path else change.path,
        pointer=(
            *side.schema_pointer(version, change.steps),
            *(keyword if len(keyword) == 1 else ()),
        ),
        probe=None if draft.probe is None else replace(draft.probe, version=version),
    )
    return placed if served else _unserved(placed)


def _unserved(draft: FindingDraft) -> FindingDraft:
    """Lower the severity for a version that is not served: clients cannot write it, but reads from
    storage still prune.
    """
    if BY_ID[draft.rule].severity is Severity.OFF:
        return draft
    if draft.effect in (Effect.PRUNED, Effect.CHANGED):
        return replace(draft, hits=(Hit.STORED,))
    return replace(draft, hits=(), severity=Severity.INFO)


def _finding(
    draft: FindingDraft,
    new: ReviewedCrd,
    options: ReviewOptions,
    evidence: Evidence | None,
) -> Finding | None:
    rule = BY_ID[draft.rule]
    severity = options.severities.get(rule.id, draft.severity or rule.severity)
    if severity is Severity.OFF:
        return None
    found = None if draft.probe is None or evidence is None else evidence(draft.probe)
    unproven = evidence is None or found is NoWitness.NO_CANDIDATE
    if unproven and draft.unsure and rule.id not in options.severities:
        severity = _milder(severity)
    return Finding(
        rule=rule.id,
        severity=severity,
        crd=new.name,
        message=draft.message,
        version=draft.version,
        path=draft.path,
        pointer=draft.pointer,
        on_old=draft.on_old,
        hits=rule.hits if draft.hits is None else draft.hits,
        details=draft.details,
        witness=found if isinstance(found, Witness) else None,
        unwitnessed="" if severity is Severity.INFO else _why_none(draft, found),
        key=draft.key,
    )


def _milder(severity: Severity) -> Severity:
    return {Severity.ERROR: Severity.WARNING, Severity.WARNING: Severity.INFO}.get(
        severity, severity
    )


def _why_none(draft: FindingDraft, found: Witness | NoWitness | None) -> str:
    if found is None:
        return draft.why_no_witness
    return "" if isinstance(found, Witness) else found


def severity_map(raw: Mapping[str, Any]) -> dict[str, Severity]:
    """Return checked overrides. Raises ``ValueError`` that names the first invalid entry."""
    found: dict[str, Severity] = {}
    for name, value in raw.items():
        if name not in BY_ID:
            raise ValueError(f"there is no rule named {name!r}")
        try:
            found[name] = Severity(str(value))
        except ValueError:
            raise ValueError(f"{name}: {value!r} is none of error, warning, info, off") from None
    return found
