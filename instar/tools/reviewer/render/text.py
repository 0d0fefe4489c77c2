"""Renders a report for a terminal: grouped by CRD, worst first, a line per finding.

``cli/commands/review.py`` calls it for ``--output text``, with a ``Report``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from instar.base.plurals import counted
from instar.tools.reviewer.render.shared import (
    SHOWN,
    as_yaml,
    counts,
    hits,
    location,
    merge_findings,
    witness_lines,
)
from instar.tools.reviewer.report import CrdReview, Finding, Report, Severity

_COLOURS = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
}
_MARK = {
    Severity.ERROR: ("✗", "red"),
    Severity.WARNING: ("!", "yellow"),
    Severity.INFO: ("·", "blue"),
}
_FEW_STORED = 10


class Paint:
    def __init__(self, on: bool) -> None:
        self._on = on

    def __call__(self, text: str, *styles: str) -> str:
        if not self._on or not text:
            return text
        codes = ";".join(_COLOURS[style] for style in styles)
        return f"\x1b[{codes}m{text}\x1b[0m"


def to_text(report: Report, *, colour: bool = False, details: bool = False) -> str:
    """``details`` adds notes, witnesses, rule diffs, the plan's commands and the checklist."""
    paint = Paint(colour)
    lines = [f"{paint('problem', 'red', 'bold')}  {problem}" for problem in report.problems]
    for crd in report.crds:
        lines += _crd(crd, paint, details)
    for name in report.only_old:
        lines.append(f"{paint(name, 'bold')}  only in OLD: the CRD is removed")
    for name in report.only_new:
        lines.append(f"{paint(name, 'bold')}  only in NEW: the CRD is added")
    lines.append(_verdict(report, paint, details))
    return "\n".join(lines) + "\n"


def _crd(crd: CrdReview, paint: Paint, details: bool) -> Iterator[str]:
    shown = [item for item in crd.findings if details or item.severity is not Severity.INFO]
    notes = len(crd.findings) - len(shown)
    label = f"  {paint(crd.label, 'dim')}" if crd.label else ""
    if not shown and not notes and not crd.stored:
        yield f"{paint('✓', 'green')} {paint(crd.name, 'bold')}{label}  nothing to report"
        yield ""
        return
    yield f"{paint(crd.name, 'bold')}{label}"
    if not details:
        shown = [item for item, _ in merge_findings(shown)]
    for severity in SHOWN:
        group = [item for item in shown if item.severity is severity]
        for item in group:
            yield from _finding(item, paint, details)
    quiet = [f"{notes} note{'s' * (notes != 1)}"] * bool(notes)
    quiet += [f"{len(crd.suppressed)} suppressed"] * bool(crd.suppressed)
    if quiet:
        yield paint(f"  … {', '.join(quiet)}", "dim")
    yield from _stored(crd, paint, details)
    yield from _plan(crd, paint, details)
    yield ""


def _finding(item: Finding, paint: Paint, details: bool) -> Iterator[str]:
    mark, colour = _MARK[item.severity]
    where = " ".join(filter(None, (item.version, item.path)))
    yield (
        f"  {paint(mark, colour, 'bold')} {paint(item.rule, colour)}  {paint(where, 'bold')}  "
        f"{item.message}{'' if details else _at(item, paint)}"
    )
    if not details:
        return
    place, who = location(item), hits(item)
    yield paint(f"      {' · '.join(filter(None, (place, who and f'hits {who}')))}", "dim")
    for line in item.details.splitlines():
        yield "      " + paint(line, {"+": "green", "-": "red"}.get(line[:1], "dim"))
    if item.witness is not None:
        if item.witness.before is not None:
            yield paint("      before the update:", "dim")
            yield from _indented(as_yaml(item.witness.before))
        yield paint("      witness:", "dim")
        yield from _indented(as_yaml(item.witness.object))
        for line in witness_lines(item.witness):
            yield f"      → {line}"
    elif item.unwitnessed:
        yield paint(f"      no witness: {item.unwitnessed}", "dim")


def _at(item: Finding, paint: Paint) -> str:
    place = location(item)
    return paint(f"  {place}", "dim") if place else ""


def _indented(text: str) -> list[str]:
    return textwrap.indent(text.rstrip(), "        ").splitlines()


def _stored(crd: CrdReview, paint: Paint, details: bool) -> Iterator[str]:
    if not crd.stored_count:
        return
    broken = [item for item in crd.stored if item.breaks]
    colour = "red" if broken else "green"
    yield paint(f"  stored objects: {len(broken)} of {crd.stored_count} would break", colour)
    most = len(crd.stored) if details else _FEW_STORED
    for item in crd.stored[:most]:
        yield f"    {item.name} ({item.version})  {item.damage}: {item.reasons[0]}"
        if details:
            yield from (f"      {reason}" for reason in item.reasons[1:])
    if len(crd.stored) > most:
        yield paint(f"    … {len(crd.stored) - most} more, --details lists them", "dim")


def _plan(crd: CrdReview, paint: Paint, details: bool) -> Iterator[str]:
    if crd.plan:
        yield paint(f"  plan: {counted(len(crd.plan), 'step')}", "bold")
    for number, step in enumerate(crd.plan, 1):
        yield f"    {number}. {paint(f'{step.release.label}:', 'blue')} {step.title}"
        if not details:
            continue
        yield from (f"       {text}" for text in filter(None, [step.why]))
        yield from (f"       needs  {text}" for text in step.preconditions)
        yield from (f"       {paint('$ ' + text, 'green')}" for text in step.commands)
        yield from (paint(f"       back   {text}", "dim") for text in filter(None, [step.rollback]))
    if details and crd.checklist:
        yield paint("  checklist", "bold")
        for item in crd.checklist:
            mark = paint("yes", "green") if item.yes else paint("no ", "red")
            yield f"    {mark}  {item.question}  {paint(item.evidence, 'dim')}"


def _verdict(report: Report, paint: Paint, details: bool) -> str:
    errors = report.count(Severity.ERROR)
    colour = "red" if errors or report.problems else "green"
    unread = f"{counted(len(report.problems), 'problem')} with the input"
    if report.problems and not report.crds:
        return paint(f"Nothing was reviewed: {unread}", colour, "bold")
    hint = "" if details or not report.findings else paint("  (--details: witnesses, plan)", "dim")
    rest = f"; incomplete: {unread}" if report.problems else ""
    text = f"{counted(len(report.crds), 'CRD')}: {counts(report)}{rest}"
    return paint(text, colour, "bold") + hint
