"""Entry point of the reviewer, for the library, the command line and the server's ``--review``.

It reads the CRDs (``reviewed_crd.py``), runs the rules (``engine.py``) and adds an example object
to each finding as evidence (``witnesses/search.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from instar.base.json_values import Object
from instar.kube.api.crd_codec import CrdDecodeError
from instar.kube.api.encoding.manifests import Document
from instar.kube.schema.cel_rules.evaluate import compile_rules
from instar.tools.reviewer.checklist import checklist
from instar.tools.reviewer.conversions import converted_findings
from instar.tools.reviewer.documents import crd_name, line_of
from instar.tools.reviewer.engine import ReviewOptions, find
from instar.tools.reviewer.field_use import with_use
from instar.tools.reviewer.plan import plan
from instar.tools.reviewer.report import (
    CrdReview,
    Finding,
    Problem,
    Report,
    Severity,
    sort_findings,
)
from instar.tools.reviewer.reviewed_crd import ReviewedCrd, read_reviewed_crd
from instar.tools.reviewer.stored import Convert, Trial, stored_finding
from instar.tools.reviewer.witnesses.search import Search

Crds = Mapping[str, Any] | Iterable[Mapping[str, Any]] | None
StoredObjects = Callable[[Document], Sequence[Object]]
"""Returns the objects to try, for the CRD they are stored under at present."""
ConverterFor = Callable[[ReviewedCrd], Convert | None]
"""Returns the converter to try for a CRD under review, or None if there is none for it."""


def review(
    old: Crds, new: Crds, *, options: ReviewOptions | None = None, witnesses: bool = True
) -> Report:
    """Return what the changes from ``old`` to ``new`` break; without ``old`` each new CRD is linted
    alone. Both are CRDs as JSON, one or many, v1 or v1beta1; many are paired by name.
    """
    before, after = _documents(old), _documents(new)
    return review_documents(before or None, after, options or ReviewOptions(), witnesses=witnesses)


def review_documents(
    old: Mapping[str, Document] | None,
    new: Mapping[str, Document],
    options: ReviewOptions,
    *,
    witnesses: bool = True,
    objects: StoredObjects | None = None,
    converter_for: ConverterFor | None = None,
) -> Report:
    """Review CRDs by name against those of the same name; without ``old`` each is linted alone."""
    before = old or {}
    reviews, problems = [], []
    for name in sorted(new if old is None else before.keys() & new.keys()):
        past, present = before.get(name), new[name]
        try:
            reviewed = read_reviewed_crd(present.value)
            found = review_crd(
                None if past is None else read_reviewed_crd(past.value),
                reviewed,
                options,
                witnesses=witnesses,
                objects=() if objects is None else objects(past or present),
                convert=converter_for(reviewed) if converter_for else None,
            )
            reviews.append(with_locations(found, past, present))
        except CrdDecodeError as error:
            problems.append(_unusable(name, past, present, error))
    return Report(
        crds=tuple(reviews),
        only_old=tuple(sorted(before.keys() - new.keys())),
        only_new=() if old is None else tuple(sorted(new.keys() - before.keys())),
        problems=tuple(problems),
    )


def _unusable(name: str, old: Document | None, new: Document, error: CrdDecodeError) -> Problem:
    """Return a problem that names the CRD that could not be decoded."""
    bad = new
    try:
        read_reviewed_crd(new.value)
    except CrdDecodeError:
        pass
    else:
        bad = old or new
    if not bad.file:
        return Problem(f"{name or 'a document'} is not a usable CRD: {error}")
    return Problem(f"not a usable CRD: {error}", bad.file, bad.line)


def review_crd(
    old: ReviewedCrd | None,
    new: ReviewedCrd,
    options: ReviewOptions,
    *,
    witnesses: bool = True,
    objects: Sequence[Object] = (),
    convert: Convert | None = None,
) -> CrdReview:
    """Review one CRD: findings with evidence, its stored objects, the plan and the checklist."""
    search = Search(old, new, compile_rules) if witnesses else None
    findings = find(old, new, options, search)
    if convert is not None:
        crossing = converted_findings(new, convert, compile_rules, options.severities)
        findings = sort_findings([*findings, *crossing])
    trial = Trial(old, new, compile_rules, convert)
    mine = [item for item in objects if trial.belongs(item)]
    findings = with_use(findings, old, mine)
    stored = tuple(trial.run(mine))
    broken = stored_finding(new.name, stored, len(mine))
    if broken is not None:
        severity = options.severities.get(broken.rule, broken.severity)
        extra = [] if severity is Severity.OFF else [replace(broken, severity=severity)]
        findings = sort_findings([*findings, *extra])
    steps = plan(old, new, findings)
    return CrdReview(
        name=new.name,
        findings=findings,
        plan=steps,
        checklist=checklist(old, new, findings, steps, stored, len(mine)),
        stored=stored,
        stored_count=len(mine),
    )


def with_locations(crd: CrdReview, old: Document | None, new: Document) -> CrdReview:
    """Return the review with the file and line of every finding."""

    def place(finding: Finding) -> Finding:
        document = old if finding.on_old and old is not None else new
        return replace(finding, file=document.file, line=line_of(document, finding.pointer))

    return replace(crd, findings=tuple(map(place, crd.findings)))


def breaking(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return one text per breaking change between two versions of a CRD, for ``Warning``
    headers.
    """
    found = find(read_reviewed_crd(old), read_reviewed_crd(new), ReviewOptions(ask_server=False))
    return [
        f"{item.rule}: {' '.join(filter(None, (item.version, item.path)))}: {item.message}"
        for item in found
        if item.severity is Severity.ERROR
    ]


def _documents(crds: Crds) -> dict[str, Document]:
    """Return CRDs by name, without file names."""
    if crds is None:
        return {}
    items = [crds] if isinstance(crds, Mapping) else list(crds)
    found = (Document(dict(item), file="") for item in items)
    return {crd_name(item.value): item for item in found}
