"""docs/reference/rules.md, made from the rules and their golden folders, so that it cannot lie."""

from __future__ import annotations

import difflib
from pathlib import Path

from instar.tools.reviewer.advice import advice
from instar.tools.reviewer.render.shared import as_yaml, witness_lines
from instar.tools.reviewer.report import Finding
from instar.tools.reviewer.rule_kit import ReviewRule
from instar.tools.reviewer.rules import RULES
from tests.reviewer.golden import FOLDER, review_folder

DOC = Path(__file__).parents[2] / "docs" / "reference" / "rules.md"

_HEAD = """\
# Rules of `instar review`

One heading per rule id. Each example is a golden test (`tests/golden/review/<rule>`), and this
page is written from them: `INSTAR_UPDATE_GOLDEN=1 pytest tests/reviewer` renews both.

*error* breaks somebody, *warning* may, *info* is good to know, *off* is silent until configured
(`[review.severity]` in `instar.toml`). *Hits* says who notices:

- **writers**: a request that was accepted is refused now
- **readers**: clients may see what they could not see before
- **stored objects**: existing data is pruned, invalid, unreadable or frozen
- **appliers**: field ownership of server-side apply
- **generated clients**: code generated from the CRD

| rule | default | hits | |
| --- | --- | --- | --- |
"""


def rules_page() -> str:
    rows = [
        f"| [{rule.id}](#{rule.id}) | {rule.severity} | {_hits(rule)} | {rule.summary} |"
        for rule in RULES
    ]
    return _HEAD + "\n".join(rows) + "\n\n" + "\n".join(_section(rule) for rule in RULES)


def _hits(rule: ReviewRule) -> str:
    return ", ".join(hit.value for hit in rule.hits)


def _section(rule: ReviewRule) -> str:
    lines = [f"## {rule.id}", "", f"{rule.summary[0].upper()}{rule.summary[1:]}.", ""]
    hits = f" · hits {_hits(rule)}" if rule.hits else ""
    lines += [f"**{rule.severity}**{hits}", "", f"{advice(rule.id)}", ""]
    lines += ["```diff", *_diff(rule.id), "```", ""]
    admission = FOLDER / rule.id / "admission.yaml"
    if admission.is_file():
        shown = admission.read_text().partition("\n---\n")[0].rstrip()
        lines += ["```yaml", shown, "```", ""]
    found = [item for item in review_folder(rule.id).findings if item.rule == rule.id]
    lines += _shown(found[0])
    return "\n".join(lines)


def _diff(name: str) -> list[str]:
    folder = FOLDER / name
    extra = folder / "instar.toml"
    old, new = ((folder / f"{side}.yaml").read_text().splitlines() for side in ("old", "new"))
    body = [
        line
        for line in difflib.unified_diff(old, new, lineterm="", n=2)
        if not line.startswith(("---", "+++", "@@"))
    ]
    settings = (
        [f"# instar.toml: {line}" for line in extra.read_text().splitlines()]
        if (extra.is_file())
        else []
    )
    return [*settings, *body]


def _shown(item: Finding) -> list[str]:
    where = " ".join(filter(None, (item.version, item.path)))
    lines = [f"> {f'{where}: ' if where else ''}{item.message}", ""]
    if item.witness is not None:
        lines += ["```yaml", as_yaml(item.witness.object).rstrip(), "```", ""]
        lines += [f"- {line}" for line in witness_lines(item.witness)]
        lines.append("")
    return lines
