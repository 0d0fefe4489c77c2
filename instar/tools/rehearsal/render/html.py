"""Renders a rehearsal as one self-contained HTML page: steps, clients, evidence.

``render/__init__.py`` calls it for ``--output html``; ``model.py`` defines the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from instar.base.escaping import html_text
from instar.tools.rehearsal.go_no_go import GoNoGo
from instar.tools.rehearsal.model import (
    ClientStanding,
    ClientVerdict,
    CrdRehearsal,
    Exchange,
    FaultOutcome,
    ObjectDamage,
    Rehearsal,
    StepOutcome,
)
from instar.tools.rehearsal.render.shared import (
    MARKS,
    damages,
    example,
    headline,
    load,
    loaded,
    rollback_text,
    step_standing,
    strip_control_characters,
    verdict,
)
from instar.tools.reviewer.render.page import page

_STYLE = """
.verdict{display:inline-block;padding:.2rem .9rem;border-radius:6px;color:#fff;font-size:1.3rem}
.go{background:#2e7d32}.nogo{background:#c62828}
.unaffected{border-left-color:#2e7d32}.warned{border-left-color:#b26a00}
.unknown{border-left-color:#777}.broken{border-left-color:#c62828}
.m{display:inline-block;width:1.4em;height:1.4em;line-height:1.4em;text-align:center;color:#fff;
border-radius:4px;font-weight:bold}
.m.unaffected{background:#2e7d32}.m.warned{background:#b26a00}.m.unknown{background:#777}
.m.broken{background:#c62828}
pre .a{color:#2e7d32}pre .d{color:#c62828}
td.c,th.c{text-align:center}table.clients{width:auto}
"""


def to_html(rehearsal: Rehearsal, decision: GoNoGo) -> str:
    return page("Upgrade rehearsal", _body(rehearsal, decision), _STYLE)


def _body(rehearsal: Rehearsal, decision: GoNoGo) -> Iterator[str]:
    kind = "go" if decision.go else "nogo"
    yield "<h1>Upgrade rehearsal</h1>"
    yield f'<p><span class="verdict {kind}">{_text(verdict(decision))}</span></p>'
    took = f'<span class="dim">in {rehearsal.seconds:.0f} s</span>'
    yield f"<p>{_text(headline(rehearsal))} {took}</p>"
    if decision.reasons:
        rows = "".join(
            f'<li><span class="pill">{_text(one.word)}</span>{_text(one.text)}</li>'
            for one in decision.reasons
        )
        yield f"<h3>{'Accepted' if decision.go else 'Why not'}</h3><ul>{rows}</ul>"
    if decision.warnings:
        yield _folded(f"Warnings: {len(decision.warnings)}", decision.warnings)
    for crd in rehearsal.crds:
        yield from _crd(crd)
    if rehearsal.assumptions:
        rows = "".join(f"<li>{_text(text)}</li>" for text in rehearsal.assumptions)
        yield f"<h3>Assumed</h3><ul>{rows}</ul>"
    if rehearsal.untouched:
        names = ", ".join(rehearsal.untouched)
        yield f'<p class="dim">In no release, and left alone: {_text(names)}</p>'


def _folded(title: str, texts: Sequence[str]) -> str:
    rows = "".join(f"<li>{_text(text)}</li>" for text in texts)
    return f"<details><summary>{_text(title)}</summary><ul>{rows}</ul></details>"


def _crd(crd: CrdRehearsal) -> Iterator[str]:
    yield f"<h2>{_text(crd.name)}</h2><p>{_text(loaded(crd))}</p>"
    for why, number in crd.unloaded.items():
        yield f"<p>unknown: {number:,}: {_text(why)}</p>"
    if crd.differing:
        yield _folded(f"Read back otherwise: {crd.differing_count}", crd.differing)
    if crd.at_once:
        yield f'<p class="dim">Applied in one go it would be refused: {_text(crd.at_once)}</p>'
    yield from (_step(number, step) for number, step in enumerate(crd.steps, 1))
    yield from _clients(crd)
    if crd.faults:
        rows = "".join(_fault(one) for one in crd.faults)
        yield f"<h3>Faults</h3><table>{rows}</table>"
    if crd.no_return is not None:
        yield f"<p><b>No way back without a loss</b> from “{_text(crd.no_return.title)}” on.</p>"
    if crd.load is not None:
        yield f'<p class="dim">On the cluster: {_text(load(crd.load))}</p>'


def _step(number: int, step: StepOutcome) -> str:
    standing = step_standing(step)
    opened = " open" if step.damages.total or step.refused else ""
    told = ", ".join(damages(step)) or ("refused" if step.refused else "objects unharmed")
    inner = [f"<p>{_text(step.refused)}</p>" if step.refused else ""]
    if step.migration is not None:
        counts = ", ".join(f"{count:,} {fate}" for fate, count in step.migration.counts.items())
        inner.append(f"<p>{_text(counts)}</p>")
        inner += [f"<p>{_text(text)}</p>" for text in step.migration.trouble]
    inner += [f"<p>unknown: {count:,}: {_text(why)}</p>" for why, count in step.unknown.items()]
    inner += [_witness(one) for one in step.damages.examples]
    if step.again:
        inner.append(f'<p class="dim">Judged as after “{_text(step.again)}”: nothing changed.</p>')
    inner.append(f"<p>Way back: {_text(rollback_text(step.back))}</p>")
    if step.back.why:
        inner.append(f'<p class="dim">{_text(step.back.why)}</p>')
    inner += [_witness(one) for one in step.back.losses.examples]
    if step.back.new_fields:
        fields = ", ".join(step.back.new_fields)
        inner.append(f'<p class="dim">Written meanwhile and lost then: {_text(fields)}</p>')
    return (
        f'<details class="{standing}"{opened}><summary>{_mark(standing)} {number}. '
        f'<b>{_text(step.title)}</b> <span class="pill">{_text(step.release)}</span> '
        f"{_text(told)}</summary><div>{''.join(inner)}</div></details>"
    )


def _mark(standing: ClientStanding) -> str:
    return f'<span class="m {standing}" title="{standing}">{MARKS[standing]}</span>'


def _witness(one: ObjectDamage) -> str:
    parts = [f"<p><b>{_text(one.damage)}</b> {_text(example(one))}</p>"]
    if one.exchange is not None:
        parts.append(_exchange(one.exchange))
    if one.diff:
        parts.append(f"<pre>{''.join(map(_line, one.diff))}</pre>")
    return "".join(parts)


def _line(line: str) -> str:
    kind = {"+": "a", "-": "d"}.get(line[:1])
    text = _text(line)
    return f'<span class="{kind}">{text}</span>\n' if kind else f"{text}\n"


def _exchange(one: Exchange) -> str:
    lines = [one.request, f"→ {one.answer}"]
    if one.before:
        lines.append(f"before: {one.before}")
    return f"<pre>{_text_lines(lines)}</pre>"


def _clients(crd: CrdRehearsal) -> Iterator[str]:
    names = list(dict.fromkeys(name for step in crd.steps for name in step.clients))
    if not names:
        return
    heads = "".join(
        f'<th class="c" title="{_text(step.title)}">{number}</th>'
        for number, step in enumerate(crd.steps, 1)
    )
    rows = []
    for name in names:
        verdicts = [step.clients.get(name) for step in crd.steps]
        marks = "".join(
            f'<td class="c">{_mark(one.standing) if one else ""}</td>' for one in verdicts
        )
        rows.append(f"<tr><td>{_text(name)}</td>{marks}<td>{_proof(verdicts)}</td></tr>")
    yield (
        f'<h3>Clients</h3><table class="clients"><tr><th>client</th>{heads}<th></th></tr>'
        f"{''.join(rows)}</table>"
    )


def _proof(verdicts: list[ClientVerdict | None]) -> str:
    """Return the first evidence of the worst step."""
    known = [one for one in verdicts if one is not None]
    worst = max(known, key=lambda one: one.standing.rank)
    if worst.standing is ClientStanding.UNAFFECTED:
        return ""
    shown = "".join(_exchange(one) for one in worst.evidence)
    basis = "".join(f'<p class="dim">{_text(text)}</p>' for text in worst.basis)
    return f"{_text('; '.join(worst.reasons))}{shown}{basis}"


def _fault(one: FaultOutcome) -> str:
    standing = {True: "unaffected", False: "broken", None: "unknown"}[one.recovered]
    word = {True: "recovers", False: "does not recover", None: "unknown"}[one.recovered]
    told = "; ".join([one.happened, *one.evidence])
    return (
        f"<tr><td>{_mark(ClientStanding(standing))}</td><td>{_text(one.fault)}</td>"
        f"<td>{word}</td><td>{_text(told)}</td></tr>"
    )


def _text(text: str) -> str:
    return html_text(strip_control_characters(text))


def _text_lines(lines: list[str]) -> str:
    return "\n".join(map(_text, lines))
