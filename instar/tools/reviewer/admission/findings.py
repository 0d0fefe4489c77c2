"""Findings about webhooks and policies under the new CRDs; ``cli/commands/review.py`` adds them to
a report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from instar.kube.api.crd_codec import CrdDecodeError
from instar.kube.api.encoding.manifests import Document
from instar.tools.reviewer.admission.configurations import (
    Configurations,
    Configured,
    named_versions,
    read_configurations,
)
from instar.tools.reviewer.admission.reading import type_check_policy
from instar.tools.reviewer.admission.refusing import refusals
from instar.tools.reviewer.engine import ReviewOptions
from instar.tools.reviewer.report import CrdReview, Finding, Report, Severity, sort_findings
from instar.tools.reviewer.reviewed_crd import ReviewedCrd, read_reviewed_crd
from instar.tools.reviewer.rules import BY_ID

MISSES, READS, REFUSES = (
    "admission-misses-version",
    "policy-reads-removed-field",
    "policy-refuses-crd",
)
"""Ids of the rules."""


def with_admission(
    report: Report,
    old: Mapping[str, Document] | None,
    new: Mapping[str, Document],
    configurations: Sequence[Document],
    options: ReviewOptions,
) -> Report:
    """Return the report with the effects of the new CRDs on the configured admission."""
    if not configurations:
        return report
    known = read_configurations(configurations)
    reviews = {crd.name: crd for crd in report.crds}
    for name, document in new.items():
        before = (old or {}).get(name)
        try:
            past = None if before is None else read_reviewed_crd(before.value)
            present = read_reviewed_crd(document.value)
        except CrdDecodeError:
            continue  # reported already
        found = [
            replace(finding, severity=severity)
            for finding in _findings(past, present, known)
            if (severity := options.severities.get(finding.rule, finding.severity))
            is not Severity.OFF
        ]
        if found:
            review = reviews.get(name) or CrdReview(name=name, findings=())
            reviews[name] = replace(review, findings=sort_findings([*review.findings, *found]))
    return replace(report, crds=tuple(reviews[name] for name in sorted(reviews)))


def _findings(
    old: ReviewedCrd | None, new: ReviewedCrd, known: Configurations
) -> Iterator[Finding]:
    for configured in known.all():
        yield from _missed(old, new, configured)
        if old is not None:
            yield from _unreadable(old, new, configured)
    for policy in known.policies:
        for message in refusals(policy, old, new, known):
            text = f"{policy.shown} would refuse this CRD: {message}"
            yield _finding(REFUSES, new, policy, text, key=f"{policy.shown} {message}")


def _missed(old: ReviewedCrd | None, new: ReviewedCrd, configured: Configured) -> Iterator[Finding]:
    named = named_versions(configured.criteria, new)
    before = [] if old is None else named_versions(configured.criteria, old)
    if not named and before:
        gone = ", ".join(before)
        text = f"{configured.shown} names no version that is left (only {gone}): it is never asked"
        yield _finding(MISSES, new, configured, text, severity=Severity.ERROR)
    if not named or not configured.criteria.exact:
        return
    served = {} if old is None else {each.name: each.served for each in old.crd.versions}
    for version in new.crd.versions:
        if version.served and version.name not in named and not served.get(version.name):
            text = (
                f"{configured.shown} has matchPolicy Exact and names {', '.join(named)} only: "
                f"writes at {version.name} pass it by"
            )
            yield _finding(MISSES, new, configured, text, version=version.name)


def _unreadable(old: ReviewedCrd, new: ReviewedCrd, configured: Configured) -> Iterator[Finding]:
    """Return expressions that compile under the old schema and not under the new one."""
    for version in named_versions(configured.criteria, new):
        if old.crd.version(version) is None:
            continue
        before = {
            each.field: each.problem for each in type_check_policy(configured.spec, old, version)
        }
        for after in type_check_policy(configured.spec, new, version):
            if after.problem is not None and before.get(after.field) is None:
                why = "; ".join(issue.text for issue in after.problem.issues)
                field = configured.path + after.field.removeprefix("spec")
                text = f"{configured.shown}: {field} does not fit the schema any more: {why}"
                yield _finding(
                    READS, new, configured, text, version=version, details=str(after.problem),
                    key=f"{configured.shown} {field}",
                )  # fmt: skip


def _finding(
    rule: str,
    new: ReviewedCrd,
    configured: Configured,
    message: str,
    *,
    version: str = "",
    severity: Severity | None = None,
    details: str = "",
    key: str = "",
) -> Finding:
    document = configured.document
    return Finding(
        rule=rule,
        severity=severity or BY_ID[rule].severity,
        crd=new.name,
        message=message,
        version=version,
        file=document.file,
        line=document.line,
        hits=BY_ID[rule].hits,
        details=details,
        key=key or configured.shown,
    )
