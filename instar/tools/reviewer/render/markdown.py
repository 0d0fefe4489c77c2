"""Renders a report as a pull request comment: a table to skim, folded evidence."""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.plurals import counted
from instar.tools.reviewer.render.shared import (
    as_yaml,
    counts,
    hits,
    location,
    place,
    witness_lines,
)
from instar.tools.reviewer.report import CrdReview, Finding, Report, Severity

_MARK = {Severity.ERROR: "🔴", Severity.WARNING: "🟡", Severity.INFO: "🔵"}
_MOST_ROWS = 60
COMMENT = 65_536
"""Most characters that a comment on GitHub may have."""


def to_markdown(report: Report) -> str:
    among = counted(len(report.crds), "CRD")
    lines = ["## CRD review", "", f"**{counts(report)}** in {among}", ""]
    for crd in report.crds:
        lines += _crd(crd)
    lines += [
        f"- `{name}` is only in OLD: the CRD and its objects would go" for name in report.only_old
    ]
    lines += [f"- `{name}` is only in NEW: nothing to compare with" for name in report.only_new]
    lines += [f"- ⚠️ {cell(str(problem))}" for problem in report.problems]
    return shortened("\n".join(lines).rstrip() + "\n", COMMENT)


def shortened(text: str, most: int) -> str:
    """Cut the text between lines and close every fold and block, so that the rest stays
    readable.
    """
    if len(text) <= most:
        return text
    note = "\n**Shortened:** the whole report is too long for a comment.\n"
    kept: list[str] = []
    room = most - len(note) - len("```\n</details>\n")
    for line in text.splitlines(keepends=True):
        room -= len(line)
        if room < 0:
            break
        kept.append(line)
    cut = "".join(kept)
    fences = sum(line.startswith("```") for line in kept)
    folds = cut.count("<details>") - cut.count("</details>")
    return cut + "```\n" * (fences % 2) + "</details>\n" * folds + note


def _crd(crd: CrdReview) -> Iterator[str]:
    yield f"### {crd.name}{f' — {crd.label}' if crd.label else ''}"
    yield ""
    loud = [item for item in crd.findings if item.severity is not Severity.INFO]
    quiet = [item for item in crd.findings if item.severity is Severity.INFO]
    if not crd.findings:
        yield "Nothing to report."
        yield ""
    if loud:
        yield from _table(loud[:_MOST_ROWS])
        if len(loud) > _MOST_ROWS:
            yield f"… and {len(loud) - _MOST_ROWS} more"
        yield ""
    if quiet:
        yield from fold(counted(len(quiet), "note"), [*_table(quiet[:_MOST_ROWS])])
    for item in loud[:_MOST_ROWS]:
        yield from _evidence(item)
    yield from _stored(crd)
    yield from _plan(crd)


def _table(findings: list[Finding]) -> Iterator[str]:
    yield "| | rule | where | what | hits |"
    yield "| --- | --- | --- | --- | --- |"
    for item in findings:
        yield (
            f"| {_MARK[item.severity]} | `{item.rule}` | {_code(place(item))} | "
            f"{cell(item.message)} | {hits(item)} |"
        )


def _evidence(item: Finding) -> Iterator[str]:
    lines: list[str] = []
    if item.details:
        lines += ["```diff", item.details, "```"]
    if item.witness is not None:
        if item.witness.before is not None:
            lines += ["Before the update:", "```yaml", as_yaml(item.witness.before).rstrip(), "```"]
        lines += ["```yaml", as_yaml(item.witness.object).rstrip(), "```"]
        lines += [f"- {cell(line)}" for line in witness_lines(item.witness)]
    elif item.unwitnessed:
        lines.append(f"No witness: {item.unwitnessed}.")
    if lines:
        where = f" ({location(item)})" if location(item) else ""
        yield from fold(f"<code>{item.rule}</code> {_html(place(item))}{_html(where)}", lines)


def fold(title: str, lines: list[str]) -> Iterator[str]:
    yield from ("<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>", "")


def _stored(crd: CrdReview) -> Iterator[str]:
    if not crd.stored_count:
        return
    yield f"**Stored objects:** {len(crd.stored)} of {crd.stored_count} are touched"
    yield ""
    if crd.stored:
        rows = [
            f"| `{item.name}` | {item.damage} | {cell('; '.join(item.reasons))} |"
            for item in crd.stored[:_MOST_ROWS]
        ]
        yield from ("| object | outcome | why |", "| --- | --- | --- |", *rows, "")


def _plan(crd: CrdReview) -> Iterator[str]:
    if crd.plan:
        lines: list[str] = []
        for number, step in enumerate(crd.plan, 1):
            lines.append(f"{number}. **[{step.release}] {step.title}**")
            lines += [f"   - {cell(step.why)}"] * bool(step.why)
            lines += [f"   - needs: {cell(text)}" for text in step.preconditions]
            lines += [f"   - `{text}`" for text in step.commands]
            lines += [f"   - back: {cell(step.rollback)}"] * bool(step.rollback)
        yield from fold(f"Migration plan: {counted(len(crd.plan), 'step')}", lines)
    if crd.checklist:
        rows = [
            f"- {'✅' if item.yes else '❌'} {item.question} {cell(item.evidence)}"
            for item in crd.checklist
        ]
        yield from fold("Checklist", rows)


def cell(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
    return _html(escaped).replace("*", "\\*").replace("`", "\\`")


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|") if text else ""


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
