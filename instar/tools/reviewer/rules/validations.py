"""Review rules about CEL rules: which were added, removed or changed, and whether ratcheting
protects old objects from them.

``rules/__init__.py`` lists them, ``engine.py`` runs their checks.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from instar.base.json_values import same_json
from instar.tools.reviewer.changes import NodeChange, changes
from instar.tools.reviewer.report import Effect
from instar.tools.reviewer.rule_kit import (
    ERROR,
    INFO,
    READERS,
    STORED,
    WRITERS,
    FindingDraft,
    NodeCheck,
    ReviewRule,
    both,
    keywords,
    show,
)

RULES = (
    ReviewRule("rule-added", ERROR, "a CEL rule refuses what was taken", (WRITERS, STORED)),
    ReviewRule("rule-changed", ERROR, "a CEL rule says something else", (WRITERS, STORED)),
    ReviewRule("rule-removed", INFO, "a CEL rule is gone: more is taken", (READERS,)),
    ReviewRule("rule-text-changed", INFO, "message, reason or field path of a CEL rule changed"),
)

_KEYWORD = "x-kubernetes-validations"
_ALIKE = 0.6
_WORD = re.compile(r"\w+")
_OLD_SELF = re.compile(r"\boldSelf\b")
_STRINGS = re.compile(r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"")

Cel = Mapping[str, Any]


class Diff(NamedTuple):
    """Rules that were added, removed or changed."""

    added: list[Cel]
    removed: list[Cel]
    changed: list[tuple[Cel, Cel]]
    retold: list[tuple[Cel, Cel]]


def validations(change: NodeChange) -> Iterator[FindingDraft]:
    pair = both(change)
    if pair is None:
        return
    diff = compare_rules(pair[0].get(_KEYWORD) or [], pair[1].get(_KEYWORD) or [])
    fresh = _new_members(*pair)
    for rule in diff.added:
        draft = _tightened("rule-added", rule, f"new rule: {_label(rule)}", f"+ {_text(rule)}")
        yield replace(draft, unsure=bool(fresh & set(_WORD.findall(_text(rule)))))
    for old, new in diff.changed:
        details = f"- {_text(old)}\n+ {_text(new)}"
        draft = _tightened("rule-changed", new, f"rule changed: {_label(new)}", details)
        yield replace(draft, unsure=True)
    for rule in diff.removed:
        yield FindingDraft(
            rule="rule-removed",
            key=_text(rule),
            message=f"rule gone: {_label(rule)}",
            details=f"- {_text(rule)}",
            effect=None if uses_old(rule) else Effect.ACCEPTED,
            expression=_text(rule),
            why_no_witness="it judged updates only" if uses_old(rule) else "",
        )
    for old, new in diff.retold:
        words = sorted(name for name in {*old, *new} if not same_json(old.get(name), new.get(name)))
        yield FindingDraft(
            rule="rule-text-changed",
            key=_text(new),
            message=f"{', '.join(words)} of a rule changed: {_label(new)}",
            details="\n".join(
                line
                for name in words
                for line in (f"- {name}: {old.get(name, '')}", f"+ {name}: {new.get(name, '')}")
            ),
        )


def _new_members(old: Mapping[str, Any], new: Mapping[str, Any]) -> set[str]:
    """Return the new fields below: a rule about them cannot reject an old object."""
    found: set[str] = set()
    for change in changes(old, new):
        if change.old is None and change.is_property:
            found.add(change.name)
    return found


def _tightened(name: str, rule: Cel, message: str, details: str) -> FindingDraft:
    """Report a tightened rule. A transition rule checks updates only; any other is ratcheted."""
    if uses_old(rule):
        return FindingDraft(
            rule=name,
            key=_text(rule),
            message=f"{message}; judges updates only",
            details=details,
            hits=(WRITERS,),
            effect=Effect.REFUSED,
            expression=_text(rule),
        )
    return FindingDraft(
        rule=name,
        key=_text(rule),
        message=f"{message}; stored objects that break it stay, until this part is edited",
        details=details,
        effect=Effect.REFUSED,
        expression=_text(rule),
    )


def compare_rules(old: list[Cel], new: list[Cel]) -> Diff:
    """Pair rules by expression, then by message, then by similarity."""
    gone = [rule for rule in old if _text(rule) not in {_text(other) for other in new}]
    came = [rule for rule in new if _text(rule) not in {_text(other) for other in old}]
    by_text = {_text(rule): rule for rule in old}
    retold = [
        (by_text[_text(rule)], rule)
        for rule in new
        if _text(rule) in by_text and by_text[_text(rule)] != rule
    ]
    changed: list[tuple[Cel, Cel]] = []
    for rule in list(came):
        partner = _partner(rule, gone)
        if partner is not None:
            gone.remove(partner)
            came.remove(rule)
            changed.append((partner, rule))
    return Diff(came, gone, changed, retold)


def _partner(rule: Cel, candidates: list[Cel]) -> Cel | None:
    message = rule.get("message")
    same = [item for item in candidates if message and item.get("message") == message]
    if same:
        return same[0]
    scored = [
        (difflib.SequenceMatcher(None, _text(item), _text(rule)).ratio(), position)
        for position, item in enumerate(candidates)
    ]
    best = max(scored, default=(0.0, 0))
    return candidates[best[1]] if best[0] >= _ALIKE else None


def uses_old(rule: Cel) -> bool:
    return bool(_OLD_SELF.search(_STRINGS.sub("", _text(rule))))


def _text(rule: Cel) -> str:
    return " ".join(str(rule.get("rule", "")).split())


def _label(rule: Cel) -> str:
    message = str(rule.get("message") or "").strip()
    return " ".join(message.split()) if message else show(_text(rule)).strip('"')


CHECKS = (NodeCheck(keywords(_KEYWORD), validations),)
