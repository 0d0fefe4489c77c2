"""Review rules about defaults that are added, removed or changed.

``rules/__init__.py`` lists them, ``engine.py`` runs their checks.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.tools.reviewer.changes import NodeChange
from instar.tools.reviewer.report import Effect
from instar.tools.reviewer.rule_kit import (
    APPLIERS,
    ERROR,
    INFO,
    READERS,
    STORED,
    WARNING,
    FindingDraft,
    NodeCheck,
    ReviewRule,
    both,
    keywords,
    show,
)

RULES = (
    ReviewRule(
        "default-added",
        WARNING,
        "objects without the field now have a value: stored ones too, as soon as they are read",
        (READERS, STORED),
    ),
    ReviewRule(
        "default-changed",
        ERROR,
        "objects that leave the field out mean something else now",
        (READERS, STORED, APPLIERS),
    ),
    ReviewRule(
        "default-removed",
        ERROR,
        "objects that leave the field out have no value there any more",
        (READERS, STORED),
    ),
)


def default(change: NodeChange) -> Iterator[FindingDraft]:
    pair = both(change)
    if pair is None:
        return
    old, new = (node.get("default") for node in pair)
    if old is None and change.name in (change.old_parent.get("required") or ()):
        yield FindingDraft(
            rule="default-added",
            severity=INFO,
            hits=(READERS,),
            message=f"{show(new)} is filled in now; the field had to be written before",
        )
        return
    if old is None:
        rule, message = "default-added", f"{show(new)} is filled in where nothing was written"
    elif new is None:
        rule, message = "default-removed", f"{show(old)} is no longer filled in"
    else:
        rule, message = "default-changed", f"{show(old)} became {show(new)}"
    yield FindingDraft(rule=rule, message=message, effect=Effect.CHANGED)


CHECKS = (NodeCheck(keywords("default"), default),)
