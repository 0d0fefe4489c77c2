"""Renders a report as one self-contained HTML page.

``render/__init__.py`` calls it for ``--output html``, with a ``Report``.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.escaping import html_text
from instar.tools.reviewer.render.page import page
from instar.tools.reviewer.render.shared import (
    as_yaml,
    counts,
    hits,
    location,
    place,
    witness_lines,
)
from instar.tools.reviewer.report import CrdReview, Finding, Report, Severity


def to_html(report: Report) -> str:
    body = [f"<h1>CRD review</h1><p><strong>{html_text(counts(report))}</strong></p>"]
    body += [f"<p>⚠ {html_text(str(problem))}</p>" for problem in report.problems]
    for crd in report.crds:
        body += _crd(crd)
    body += [f"<p><code>{html_text(name)}</code> is only in OLD</p>" for name in report.only_old]
    body += [f"<p><code>{html_text(name)}</code> is only in NEW</p>" for name in report.only_new]
    return page("CRD review", body)


def _crd(crd: CrdReview) -> Iterator[str]:
    label = f' <span class="dim">{html_text(crd.label)}</span>' if crd.label else ""
    yield f"<h2>{html_text(crd.name)}{label}</h2>"
    if not crd.findings:
        yield "<p>Nothing to report.</p>"
    yield from (_finding(item) for item in crd.findings)
    if crd.suppressed:
        yield f'<p class="dim">{len(crd.suppressed)} suppressed</p>'
    yield from _stored(crd)
    yield from _plan(crd)


def _finding(item: Finding) -> str:
    opened = " open" if item.severity is Severity.ERROR and item.witness is None else ""
    pills = "".join(f'<span class="pill">{html_text(hit.value)}</span>' for hit in item.hits)
    inner = [f'<p class="dim">{html_text(location(item))}</p>' * bool(location(item))]
    inner.append(f"<p>{pills}</p>" if hits(item) else "")
    inner.append(f"<pre>{html_text(item.details)}</pre>" if item.details else "")
    if item.witness is not None:
        if item.witness.before is not None:
            inner.append(
                f"<p>before the update</p><pre>{html_text(as_yaml(item.witness.before))}</pre>"
            )
        inner.append(f"<pre>{html_text(as_yaml(item.witness.object))}</pre>")
        inner += [f"<p>→ {html_text(line)}</p>" for line in witness_lines(item.witness)]
    elif item.unwitnessed:
        inner.append(f'<p class="dim">no witness: {html_text(item.unwitnessed)}</p>')
    return (
        f'<details class="{item.severity.value}"{opened}><summary><b>{html_text(item.rule)}</b> '
        f"<code>{html_text(place(item))}</code> {html_text(item.message)}</summary>"
        f"<div>{''.join(inner)}</div></details>"
    )


def _stored(crd: CrdReview) -> Iterator[str]:
    if not crd.stored_count:
        return
    yield f"<h3>Stored objects: {len(crd.stored)} of {crd.stored_count} are touched</h3>"
    rows = "".join(
        f"<tr><td><code>{html_text(item.name)}</code></td><td>{item.damage}</td>"
        f"<td>{html_text('; '.join(item.reasons))}</td></tr>"
        for item in crd.stored
    )
    yield f"<table>{rows}</table>"


def _plan(crd: CrdReview) -> Iterator[str]:
    if crd.plan:
        yield "<h3>Migration plan</h3><ol>"
        for step in crd.plan:
            needs = "".join(f"<br>needs: {html_text(text)}" for text in step.preconditions)
            commands = html_text("\n".join(step.commands))
            back = (
                f"<br><span class='dim'>back: {html_text(step.rollback)}</span>"
                if step.rollback
                else ""
            )
            yield (
                f'<li><span class="pill">{html_text(step.release.label)}</span> '
                f"<strong>{html_text(step.title)}</strong><br>{html_text(step.why)}{needs}"
                f"{f'<pre>{commands}</pre>' if commands else ''}{back}</li>"
            )
        yield "</ol>"
    if crd.checklist:
        rows = "".join(
            f"<tr><td>{'yes' if item.yes else '<strong>no</strong>'}</td>"
            f"<td>{html_text(item.question)}</td><td>{html_text(item.evidence)}</td></tr>"
            for item in crd.checklist
        )
        yield f"<h3>Checklist</h3><table>{rows}</table>"
