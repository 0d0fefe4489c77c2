"""Renders a rehearsal for a terminal: evidence first, the verdict last.

``cli/commands/rehearse.py`` calls it for ``--output text``; ``model.py`` defines the results.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.plurals import counted
from instar.tools.rehearsal.go_no_go import GoNoGo
from instar.tools.rehearsal.model import ClientStanding, CrdRehearsal, Rehearsal, StepOutcome, Way
from instar.tools.rehearsal.render.shared import (
    MARKS,
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
from instar.tools.reviewer.render.text import Paint

_COLOURS = {
    ClientStanding.UNAFFECTED: "green",
    ClientStanding.WARNED: "yellow",
    ClientStanding.UNKNOWN: "yellow",
    ClientStanding.BROKEN: "red",
}


def to_text(
    rehearsal: Rehearsal, decision: GoNoGo, *, colour: bool = False, details: bool = False
) -> str:
    paint = Paint(colour)
    lines = [paint(strip_control_characters(headline(rehearsal)), "bold"), ""]
    for crd in rehearsal.crds:
        lines += _crd(crd, paint, details)
    lines += [
        paint(f"assumed: {strip_control_characters(text)}", "dim") for text in rehearsal.assumptions
    ]
    if rehearsal.untouched:
        number = counted(len(rehearsal.untouched), "CRD")
        lines.append(paint(f"in no release, and left alone: {number}", "dim"))
    lines += _decision(decision, paint, details)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _crd(crd: CrdRehearsal, paint: Paint, details: bool) -> Iterator[str]:
    yield f"{paint(crd.name, 'bold')}  {loaded(crd)}"
    yield from (
        f"  unknown: {number:,}: {strip_control_characters(why)}"
        for why, number in crd.unloaded.items()
    )
    yield from (
        paint(f"  otherwise: {strip_control_characters(text)}", "dim") for text in crd.differing[:2]
    )
    if crd.at_once:
        yield paint(
            f"  applied in one go it would be refused: {strip_control_characters(crd.at_once)}",
            "dim",
        )
    for number, step in enumerate(crd.steps, 1):
        yield from _step(number, step, paint, details)
    yield from _clients(crd, paint)
    for fault in crd.faults:
        if fault.recovered and not fault.objects:
            continue
        word = {True: "recovers", False: "DOES NOT RECOVER", None: "unknown"}[fault.recovered]
        colour = "green" if fault.recovered else "red"
        happened = paint(strip_control_characters(fault.happened), "dim")
        yield f"  {fault.fault}: {paint(word, colour)}  {happened}"
        yield from (f"      {strip_control_characters(text)}" for text in fault.evidence)
    back = crd.no_return
    if back is not None:
        yield paint(f"  no way back without a loss from “{back.title}” on", "red")
    if crd.load is not None:
        yield paint(f"  on the cluster: {load(crd.load)}", "dim")
    yield ""


def _step(number: int, step: StepOutcome, paint: Paint, details: bool) -> Iterator[str]:
    standing = step_standing(step)
    mark = paint(MARKS[standing], _COLOURS[standing], "bold")
    yield f"  {number} {mark} {step.title}  {paint(step.release, 'dim')}"
    if step.refused:
        yield f"      refused: {strip_control_characters(step.refused)}"
        return
    if step.migration is not None:
        counts = ", ".join(f"{number:,} {fate}" for fate, number in step.migration.counts.items())
        yield paint(f"      {counts or 'nothing to rewrite'}", "dim")
        yield from (f"      {strip_control_characters(text)}" for text in step.migration.trouble)
    for text in damages(step):
        yield f"      {paint(text, 'bold')}"
    for one in step.damages.examples if details else step.damages.examples[:3]:
        yield f"        {strip_control_characters(example(one))}"
        if details:
            yield from _diff(one.diff, paint)
    yield from (f"      unknown: {count:,}: {why}" for why, count in step.unknown.items())
    if step.again and details:
        yield paint(f"      judged as after “{step.again}”: nothing else changed", "dim")
    if step.back.way is not Way.FREE:
        yield paint(f"      way back: {rollback_text(step.back)}", "dim")
        if details and step.back.why:
            yield paint(f"        {strip_control_characters(step.back.why)}", "dim")
    if details and step.back.new_fields:
        fields = ", ".join(step.back.new_fields)
        yield paint(f"      written meanwhile and lost on the way back: {fields}", "dim")


def _diff(lines: tuple[str, ...], paint: Paint) -> Iterator[str]:
    for line in lines:
        colour = {"+": "green", "-": "red"}.get(line[:1], "dim")
        yield "          " + paint(strip_control_characters(line), colour)


def _clients(crd: CrdRehearsal, paint: Paint) -> Iterator[str]:
    names = list(dict.fromkeys(name for step in crd.steps for name in step.clients))
    if not names:
        return
    width = max(len(strip_control_characters(name)) for name in names)
    numbers = " ".join(str(number) for number in range(1, len(crd.steps) + 1))
    yield paint(f"  {'clients':{width}}  {numbers}", "dim")
    for name in names:
        marks = []
        for number, step in enumerate(crd.steps, 1):
            found = step.clients.get(name)
            standing = found.standing if found is not None else ClientStanding.UNAFFECTED
            mark = MARKS[standing] if found is not None else " "
            room = " " * (len(str(number)) - 1)
            marks.append(room + (paint(mark, _COLOURS[standing]) if mark.strip() else mark))
        yield f"  {strip_control_characters(name):{width}}  {' '.join(marks)}"
        yield from _evidence(crd, name, paint)


def _evidence(crd: CrdRehearsal, name: str, paint: Paint) -> Iterator[str]:
    """Return the first step that is worse than those before it."""
    worst = ClientStanding.UNAFFECTED
    for step in crd.steps:
        found = step.clients.get(name)
        if found is None or found.standing.rank <= worst.rank:
            continue
        worst = found.standing
        for text in found.reasons[:2]:
            yield f"      {paint(worst, _COLOURS[worst])}: {strip_control_characters(text)}"
        for one in found.evidence[:1]:
            yield paint(f"        {strip_control_characters(exchange(one))}", "dim")
        yield from (
            paint(f"        {strip_control_characters(text)}", "dim") for text in found.basis
        )


def _decision(decision: GoNoGo, paint: Paint, details: bool) -> Iterator[str]:
    colour = "green" if decision.go else "red"
    yield paint(verdict(decision), colour, "bold")
    most = len(decision.reasons) if details else 10
    yield from (
        f"  {reason.word}: {strip_control_characters(reason.text)}"
        for reason in decision.reasons[:most]
    )
    if len(decision.reasons) > most:
        yield paint(f"  … {len(decision.reasons) - most} more, --details lists them", "dim")
    most = len(decision.warnings) if details else 5
    yield from (
        paint(f"  warning: {strip_control_characters(t)}", "yellow")
        for t in decision.warnings[:most]
    )
    if len(decision.warnings) > most:
        yield paint(f"  … {len(decision.warnings) - most} more warnings", "dim")
