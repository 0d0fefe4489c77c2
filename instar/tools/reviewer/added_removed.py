"""Findings about CRDs that only one side of a review has: removed with their objects, or new. Pure.

``instar review`` and the console's review job add them to the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from instar.kube.api.crd_codec import CrdDecodeError
from instar.kube.api.encoding.manifests import Document
from instar.tools.reviewer.documents import line_of
from instar.tools.reviewer.engine import ReviewOptions, find
from instar.tools.reviewer.report import CrdReview, Finding, Problem, Report, Severity
from instar.tools.reviewer.reviewed_crd import read_reviewed_crd
from instar.tools.reviewer.rules import BY_ID

REMOVED, REFUSED = "crd-removed", "crd-refused"
"""Ids of the two rules."""


def with_presence(
    report: Report,
    old: Mapping[str, Document],
    new: Mapping[str, Document],
    options: ReviewOptions,
    *,
    removed: bool = True,
) -> Report:
    """Return the report with findings about CRDs that only one side has. ``removed`` False: the old
    side is a whole cluster, so a CRD missing in the new side is not removed.
    """
    gone = [name for name in report.only_old if name in old] if removed else []
    crds = [_removed(name, old[name], options) for name in gone]
    problems = list(report.problems)
    for name in report.only_new:
        if name not in new:
            continue
        try:
            crds.append(_refused(name, new[name], options))
        except CrdDecodeError as error:
            document = new[name]
            text = f"not a usable CRD: {error}"
            problems.append(Problem(text, document.file, document.line))
    told = [crd for crd in crds if crd.findings]
    ordered = sorted([*report.crds, *told], key=lambda crd: crd.name)
    return replace(
        report,
        crds=tuple(ordered),
        only_old=report.only_old if removed else (),
        problems=tuple(problems),
    )


def without_unread(report: Report, *, old: bool, new: bool) -> Report:
    """Return the report without CRDs that are missing on one side only because a file of that side
    (``old`` or ``new``) could not be read.
    """
    return replace(
        report,
        only_old=() if new else report.only_old,
        only_new=() if old else report.only_new,
    )


def _removed(name: str, document: Document, options: ReviewOptions) -> CrdReview:
    rule = BY_ID[REMOVED]
    severity = options.severities.get(REMOVED, rule.severity)
    finding = Finding(
        rule=REMOVED,
        severity=severity,
        crd=name,
        message="the CRD is gone: applying this deletes nothing, but a tool that prunes deletes it "
        "with every object of it",
        pointer=("metadata", "name"),
        on_old=True,
        file=document.file,
        line=document.line,
        hits=rule.hits,
    )
    return CrdReview(name=name, findings=() if severity is Severity.OFF else (finding,))


def _refused(name: str, document: Document, options: ReviewOptions) -> CrdReview:
    """Return findings about a new CRD: only those of the server's own validation."""
    found = [
        replace(item, file=document.file, line=line_of(document, item.pointer))
        for item in find(None, read_reviewed_crd(document.value), options)
        if item.rule == REFUSED
    ]
    return CrdReview(name=name, findings=tuple(found))
