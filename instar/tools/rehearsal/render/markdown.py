"""Renders a rehearsal as a pull request comment: verdict, table of steps, folded evidence."""

from __future__ import annotations

from collections.abc import Iterator

from instar.tools.rehearsal.go_no_go import GoNoGo
from instar.tools.rehearsal.model import ClientStanding, CrdRehearsal, Rehearsal
from instar.tools.rehearsal.render.shared import (
    clean,
    damages,
    example,
    exchange,
    headline,
    load,
    loaded,
    step_standing,
    verdict,
    way,
)
from instar.tools.reviewer.render.markdown import COMMENT, cell, fold, shortened

_MARK = {
    ClientStanding.UNAFFECTED: "🟢",
    ClientStanding.WARNED: "🟡",
    ClientStanding.UNKNOWN: "⚪",
    ClientStanding.BROKEN: "🔴",
}
_MOST = 20


def to_markdown(rehearsal: Rehearsal, decision: GoNoGo) -> str:
    mark = "🟢" if decision.go else "🔴"
    lines = [f"## {mark} {verdict(decision)}", "", _cell(headline(rehearsal)), ""]
    lines += [f"- **{one.word}**: {_cell(one.text)}" for one in decision.reasons[:_MOST]]
    if len(decision.reasons) > _MOST:
        lines.append(f"- … and {len(decision.reasons) - _MOST} more")
    lines += [f"- 🟡 {_cell(text)}" for text in decision.warnings[:_MOST]]
    lines.append("")
    for crd in rehearsal.crds:
        lines += _crd(crd)
    lines += [f"- assumed: {_cell(text)}" for text in rehearsal.assumptions]
    return shortened("\n".join(lines).rstrip() + "\n", COMMENT)


def _cell(text: str) -> str:
    return cell(clean(text))


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
            f"{_cell(way(step.back))} |"
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
    yield from _proof(crd)


def _proof(crd: CrdRehearsal) -> Iterator[str]:
    for step in crd.steps:
        lines: list[str] = []
        for one in step.damages.examples:
            lines.append(f"- {_cell(example(one))}")
            if one.diff:
                shown = [clean(line).replace("```", "'''") for line in one.diff]
                lines += ["", "```diff", *shown, "```", ""]
        for name, verdict_ in step.clients.items():
            lines += [f"- {_cell(name)}: {_cell(text)}" for text in verdict_.reasons]
            lines += [f"  - {_cell(exchange(one))}" for one in verdict_.evidence]
            lines += [f"  - {_cell(text)}" for text in verdict_.basis if verdict_.reasons]
        if lines:
            yield from fold(_cell(step.title), lines)
    if crd.load is not None:
        yield f"On the cluster: {_cell(load(crd.load))}"
        yield ""
