"""Renders a report as a pull request comment: errors, warnings, then folded evidence and notes.

``render/__init__.py`` calls it for ``--output markdown``, and ``instar review --comment`` for the
comment. A comment has a maximum length, so the report is a list of sections; ``comment_budget.py``
leaves out notes and evidence before warnings, and warnings before errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from instar.base.escaping import html_text, markdown_block, markdown_code, markdown_text
from instar.base.plurals import counted
from instar.tools.reviewer.render.comment_budget import COMMENT, Section, fit
from instar.tools.reviewer.render.shared import (
    as_yaml,
    counts,
    hits,
    is_unchanged,
    location,
    merge_findings,
    place,
    witness_lines,
)
from instar.tools.reviewer.report import CrdReview, Finding, Report, Severity

_MARK = {Severity.ERROR: "🔴", Severity.WARNING: "🟡", Severity.INFO: "🔵"}
_NOUN = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_TITLE = {Severity.ERROR: "Errors", Severity.WARNING: "Warnings"}
_TABLE = ("| | CRD | rule | where | what | hits |", "| --- | --- | --- | --- | --- | --- |")
_LONG_CELL = 600
_FEW = 40
"""How many unchanged CRDs are named."""
_HEAD, _ERRORS, _WARNINGS, _SUMMARIES, _EVIDENCE, _PLANS, _DOUBTS, _NOTES, _REST = range(9)
"""Priorities, the most important first."""


def to_markdown(report: Report, *, most: int = COMMENT, whole: str = "") -> str:
    """``whole`` is a sentence that says where the complete report is."""
    among = counted(len(report.crds), "CRD")
    title = ("## CRD review", "", f"**{counts(report)}** in {among}", "")
    sections = [
        Section((title,), "title", _HEAD),
        _list(
            [f"- ⚠️ {markdown_text(str(problem))}" for problem in report.problems],
            "unread file",
            _HEAD,
        ),
        _findings(report, Severity.ERROR, _ERRORS),
        *_stored(report),
        _findings(report, Severity.WARNING, _WARNINGS),
        _list(_presence(report), "added or removed CRD", _SUMMARIES),
        Section((_unchanged(report),), "list of unchanged CRDs", _SUMMARIES),
        _evidence(report, Severity.ERROR, _EVIDENCE),
        _evidence(report, Severity.WARNING, _DOUBTS),
        Section(tuple(map(_plan, _with_plan(report))), "migration plan", _PLANS),
        _notes(report),
        Section(tuple(map(_checklist, _with_checklist(report))), "checklist", _REST),
    ]
    return fit([section for section in sections if any(section.items)], most, whole)


def _list(lines: Sequence[str], noun: str, priority: int) -> Section:
    return Section(tuple((line,) for line in lines), noun, priority, closing=("",))


def _findings(report: Report, severity: Severity, priority: int) -> Section:
    opening = (f"### {_TITLE[severity]}", "", *_TABLE)
    return _table(report, severity, priority, opening, ("",))


def _notes(report: Report) -> Section:
    title = f"<summary>{counted(report.count(Severity.INFO), 'note')}</summary>"
    closing = ("", "</details>", "")
    return _table(report, Severity.INFO, _NOTES, ("<details>", title, "", *_TABLE), closing)


def _table(
    report: Report,
    severity: Severity,
    priority: int,
    opening: tuple[str, ...],
    closing: tuple[str, ...],
) -> Section:
    rows, weights = [], []
    for crd in report.crds:
        found = [item for item in crd.findings if item.severity is severity]
        for item, count in merge_findings(found):
            rows.append((_row(crd, item),))
            weights.append(count)
    return Section(tuple(rows), _NOUN[severity], priority, opening, closing, tuple(weights))


def _row(crd: CrdReview, item: Finding) -> str:
    return (
        f"| {_MARK[item.severity]} | {markdown_text(_name(crd))} | `{item.rule}` | "
        f"{markdown_code(place(item))} "
        f"| {markdown_text(_cut(item.message))} | {hits(item)} |"
    )


def _name(crd: CrdReview) -> str:
    return f"{crd.name} — {crd.label}" if crd.label else crd.name


def _unchanged(report: Report) -> tuple[str, ...]:
    """Return one line for all CRDs without a finding."""
    names = [crd.name for crd in report.crds if is_unchanged(crd)]
    if not names:
        return ()
    listed = [markdown_code(name) for name in dict.fromkeys(names)]
    more = [f"and {len(listed) - _FEW} more"] if len(listed) > _FEW else []
    shown = ", ".join([*listed[:_FEW], *more])
    return (f"Nothing to report for {counted(len(names), 'CRD')}: {shown}", "")


def _presence(report: Report) -> list[str]:
    gone = [f"- {markdown_code(name)} is only in OLD: it is removed" for name in report.only_old]
    return gone + [
        f"- {markdown_code(name)} is only in NEW: it is added" for name in report.only_new
    ]


def _evidence(report: Report, severity: Severity, priority: int) -> Section:
    found = [item for item in report.findings if item.severity is severity]
    folds = tuple(lines for item in found if (lines := tuple(_proof(item))))
    return Section(folds, f"{_NOUN[severity]} example", priority)


def _proof(item: Finding) -> Iterator[str]:
    lines: list[str] = []
    if item.details:
        lines.append(markdown_block(item.details, "diff"))
    if item.witness is not None:
        if item.witness.before is not None:
            before = markdown_block(as_yaml(item.witness.before).rstrip(), "yaml")
            lines += ["Before the update:", before]
        lines.append(markdown_block(as_yaml(item.witness.object).rstrip(), "yaml"))
        lines += [f"- {markdown_text(line)}" for line in witness_lines(item.witness)]
    elif item.unwitnessed:
        lines.append(f"No witness: {markdown_text(item.unwitnessed)}.")
    if lines:
        where = f" ({location(item)})" if location(item) else ""
        title = (
            f"{html_text(item.crd)} <code>{item.rule}</code> "
            f"{html_text(place(item))}{html_text(where)}"
        )
        yield from fold(title, lines)


def fold(title: str, lines: list[str]) -> Iterator[str]:
    yield from ("<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>", "")


def _stored(report: Report) -> Iterator[Section]:
    for crd in report.crds:
        if not crd.stored_count:
            continue
        count = f"{len(crd.stored)} of {counted(crd.stored_count, 'stored object')}"
        lines = (f"**{markdown_text(_name(crd))}:** the change touches {count}", "")
        yield Section((lines,), "count of stored objects", _SUMMARIES)
        rows = tuple(
            (
                f"| {markdown_code(item.name)} | {item.damage} | "
                f"{markdown_text(_cut('; '.join(item.reasons)))} |",
            )
            for item in crd.stored
        )
        head = ("| object | outcome | why |", "| --- | --- | --- |")
        yield Section(rows, "stored object", _DOUBTS, opening=head, closing=("",))


def _with_plan(report: Report) -> list[CrdReview]:
    return [crd for crd in report.crds if crd.plan]


def _plan(crd: CrdReview) -> tuple[str, ...]:
    lines: list[str] = []
    for number, step in enumerate(crd.plan, 1):
        lines.append(f"{number}. **{step.release.label}: {step.title}**")
        lines += [f"   - {markdown_text(step.why)}"] * bool(step.why)
        lines += [f"   - needs: {markdown_text(text)}" for text in step.preconditions]
        lines += [f"   - {markdown_code(text)}" for text in step.commands]
        lines += [f"   - back: {markdown_text(step.rollback)}"] * bool(step.rollback)
    title = f"Migration plan of {html_text(_name(crd))}: {counted(len(crd.plan), 'step')}"
    return tuple(fold(title, lines))


def _with_checklist(report: Report) -> list[CrdReview]:
    return [crd for crd in report.crds if crd.checklist and not is_unchanged(crd)]


def _checklist(crd: CrdReview) -> tuple[str, ...]:
    rows = [
        f"- {'✅' if item.yes else '❌'} {markdown_text(item.question)} "
        f"{markdown_text(item.evidence)}"
        for item in crd.checklist
    ]
    return tuple(fold(f"Checklist of {html_text(_name(crd))}", rows))


def _cut(text: str) -> str:
    return text if len(text) <= _LONG_CELL else f"{text[: _LONG_CELL - 1]}…"
