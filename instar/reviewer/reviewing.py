"""Review pairs of CRDs: the one entry for library, command line and server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from instar.api.crd_codec import CrdDecodeError
from instar.api.manifests import Document
from instar.plain import Object
from instar.reviewer.checklist import checklist
from instar.reviewer.conversions import converted_findings
from instar.reviewer.documents import line_of
from instar.reviewer.engine import Options, find
from instar.reviewer.field_use import with_use
from instar.reviewer.plan import plan
from instar.reviewer.report import CrdReview, Finding, Problem, Report, Severity, in_order
from instar.reviewer.stored import Convert, Trial, stored_finding
from instar.reviewer.subject import Subject, subject
from instar.reviewer.witnesses.search import Search
from instar.schema.validations.evaluate import compile_rules

Crds = Mapping[str, Any] | Iterable[Mapping[str, Any]] | None


def review(
    old: Crds, new: Crds, *, options: Options | None = None, witnesses: bool = True
) -> Report:
    """What changes from ``old`` to ``new`` break; without ``old`` each new CRD is linted alone.

    Both are CRDs as JSON, one or many, v1 or v1beta1; many are paired by name.
    """
    chosen = options or Options()
    before, after = _by_name(old), _by_name(new)
    alone = not before
    reviews, problems = [], []
    for name in sorted(after):
        if not alone and name not in before:
            continue
        try:
            past = subject(before[name]) if name in before else None
            reviews.append(review_crd(past, subject(after[name]), chosen, witnesses=witnesses))
        except CrdDecodeError as error:
            problems.append(Problem(f"{name or 'a document'} is not a usable CRD: {error}"))
    return Report(
        crds=tuple(reviews),
        only_old=tuple(sorted(set(before) - set(after))),
        only_new=() if alone else tuple(sorted(set(after) - set(before))),
        problems=tuple(problems),
    )


def review_crd(
    old: Subject | None,
    new: Subject,
    options: Options,
    *,
    witnesses: bool = True,
    objects: Sequence[Object] = (),
    convert: Convert | None = None,
) -> CrdReview:
    """One CRD: findings with evidence, its stored objects, the plan and the checklist."""
    search = Search(old, new, compile_rules) if witnesses else None
    findings = find(old, new, options, search)
    if convert is not None:
        crossing = converted_findings(new, convert, compile_rules, options.severities)
        findings = in_order([*findings, *crossing])
    trial = Trial(old, new, compile_rules, convert)
    mine = [item for item in objects if trial.belongs(item)]
    findings = with_use(findings, old, mine)
    stored = tuple(trial.run(mine))
    broken = stored_finding(new.name, stored, len(mine))
    if broken is not None:
        severity = options.severities.get(broken.rule, broken.severity)
        extra = [] if severity is Severity.OFF else [replace(broken, severity=severity)]
        findings = in_order([*findings, *extra])
    steps = plan(old, new, findings)
    return CrdReview(
        name=new.name,
        findings=findings,
        plan=steps,
        checklist=checklist(old, new, findings, steps, stored, len(mine)),
        stored=stored,
        stored_count=len(mine),
    )


def located(crd: CrdReview, old: Document | None, new: Document) -> CrdReview:
    """The review with every finding's file and line."""

    def place(finding: Finding) -> Finding:
        document = old if finding.on_old and old is not None else new
        return replace(finding, file=document.file, line=line_of(document, finding.pointer))

    return replace(crd, findings=tuple(map(place, crd.findings)))


def breaking(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """One text per breaking change between two versions of a CRD, for ``Warning`` headers."""
    found = find(subject(old), subject(new), Options(ask_server=False))
    return [
        f"{item.rule}: {' '.join(filter(None, (item.version, item.path)))}: {item.message}"
        for item in found
        if item.severity is Severity.ERROR
    ]


def _by_name(crds: Crds) -> dict[str, Mapping[str, Any]]:
    if crds is None:
        return {}
    items = [crds] if isinstance(crds, Mapping) else list(crds)
    return {str((item.get("metadata") or {}).get("name", "")): item for item in items}
