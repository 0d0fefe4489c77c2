"""Renders the result of ``instar rehearse`` as a pull request comment, with folded details.

``render/__init__.py`` calls it for ``--output markdown``; ``model.py`` defines the results.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.escaping import markdown_block, markdown_text
from instar.tools.rehearsal.go_no_go import GoNoGo
from instar.tools.rehearsal.model import ClientStanding, CrdRehearsal, Rehearsal
from instar.tools.rehearsal.render.shared import (
    damages,
    example,
    exchange,
    headline,
    load,
    loaded,
    rollback_text,
    step_standing,
    strip_control_characters,
    verdict,
)
from instar.tools.reviewer.render.comment_budget import Section, fit
from instar.tools.reviewer.render.markdown import fold

_MARK = {
    ClientStanding.UNAFFECTED: "🟢",
    ClientStanding.WARNED: "🟡",
    ClientStanding.UNKNOWN: "⚪",
    ClientStanding.BROKEN: "🔴",
}


def to_markdown(rehearsal: Rehearsal, decision: GoNoGo) -> str:
    mark = "🟢" if decision.go else "🔴"
    title = (f"## {mark} {verdict(decision)}", "", _cell(headline(rehearsal)), "")
    reasons = tuple((f"- **{one.word}**: {_cell(one.text)}",) for one in decision.reasons)
    warnings = tuple((f"- 🟡 {_cell(text)}",) for text in decision.warnings)
    assumed = tuple((f"- assumed: {_cell(text)}",) for text in rehearsal.assumptions)
    sections = [
        Section((title,), "title", 0),
        Section(reasons, "reason", 1),
        Section(warnings, "warning", 3, closing=("",)),
    ]
    for crd in rehearsal.crds:
        sections.append(Section((tuple(_crd(crd)),), "CRD", 2))
        sections.append(Section(tuple(_proof(crd)), "step with evidence", 5))
    sections.append(Section(assumed, "assumption", 4))
    return fit([section for section in sections if any(section.items)])


def _cell(text: str) -> str:
    return markdown_text(strip_control_characters(text))


def _crd(crd: CrdRehearsal) -> Iterator[str]:
    yield f"### {crd.name}"
    yield ""
    yield _cell(loaded(crd))
    yield ""
    yield "| | step | objects | way back |"
    yield "| --- | --- | --- | --- |"
    for number, step in enumerate(crd.steps, 1):
        found = step.refused or ", ".join(damages(step)) or "unharmed"
        yield (
            f"| {_MARK[step_standing(step)]} | {number}. {_cell(step.title)} | {_cell(found)} | "
            f"{_cell(rollback_text(step.back))} |"
        )
    yield ""
    names = list(dict.fromkeys(name for step in crd.steps for name in step.clients))
    if names:
        heads = " | ".join(str(number) for number in range(1, len(crd.steps) + 1))
        yield f"| client | {heads} |"
        yield "| --- |" + " --- |" * len(crd.steps)
        for name in names:
            verdicts = [step.clients.get(name) for step in crd.steps]
            marks = " | ".join(_MARK[one.standing] if one else "" for one in verdicts)
            yield f"| {_cell(name)} | {marks} |"
        yield ""
    if crd.load is not None:
        yield f"On the cluster: {_cell(load(crd.load))}"
        yield ""


def _proof(crd: CrdRehearsal) -> Iterator[tuple[str, ...]]:
    """Yield a fold per step that has evidence."""
    for step in crd.steps:
        lines: list[str] = []
        for one in step.damages.examples:
            lines.append(f"- {_cell(example(one))}")
            if one.diff:
                shown = "\n".join(map(strip_control_characters, one.diff))
                lines += ["", markdown_block(shown, "diff"), ""]
        for name, verdict_ in step.clients.items():
            lines += [f"- {_cell(name)}: {_cell(text)}" for text in verdict_.reasons]
            lines += [f"  - {_cell(exchange(one))}" for one in verdict_.evidence]
            lines += [f"  - {_cell(text)}" for text in verdict_.basis if verdict_.reasons]
        if lines:
            yield tuple(fold(_cell(step.title), lines))
