"""Review rules about unknown fields and embedded resources.

``rules/__init__.py`` lists them, ``engine.py`` runs their checks.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.tools.reviewer.changes import NodeChange
from instar.tools.reviewer.report import Effect
from instar.tools.reviewer.rule_kit import (
    CLIENTS,
    ERROR,
    OFF,
    READERS,
    STORED,
    WARNING,
    WRITERS,
    FindingDraft,
    NodeCheck,
    ReviewRule,
    both,
    keywords,
)

RULES = (
    ReviewRule(
        "preserve-unknown-removed",
        ERROR,
        "a node no longer keeps fields its schema does not know: they are pruned",
        (STORED, WRITERS, READERS),
    ),
    ReviewRule(
        "preserve-unknown-added",
        WARNING,
        "a node keeps fields nothing validates; clients cannot know them",
        (READERS, CLIENTS),
    ),
    ReviewRule(
        "embedded-resource-added",
        ERROR,
        "a node must be a whole resource now: apiVersion and kind are demanded",
        (WRITERS, STORED),
    ),
    ReviewRule(
        "embedded-resource-removed",
        ERROR,
        "a node is no longer a resource: apiVersion, kind and metadata are not kept by themselves",
        (STORED, WRITERS, READERS),
    ),
    ReviewRule("docs-changed", OFF, "a description, title or example changed"),
)

_PRESERVE, _EMBEDDED = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"
DOCS = ("description", "title", "example", "externalDocs", "id", "$schema")


def preserve(change: NodeChange) -> Iterator[FindingDraft]:
    pair = both(change)
    if pair is None:
        return
    if pair[0].get(_PRESERVE):
        yield FindingDraft(
            rule="preserve-unknown-removed",
            effect=Effect.PRUNED,
            message="unknown fields were kept here and are pruned now",
        )
    else:
        yield FindingDraft(
            rule="preserve-unknown-added",
            effect=Effect.ACCEPTED,
            message="unknown fields are kept here now, unvalidated",
        )


def embedded(change: NodeChange) -> Iterator[FindingDraft]:
    pair = both(change)
    if pair is None:
        return
    if pair[1].get(_EMBEDDED):
        yield FindingDraft(
            rule="embedded-resource-added",
            effect=Effect.REFUSED,
            message="must be a whole resource now, with apiVersion and kind",
        )
    else:
        kept = pair[1].get(_PRESERVE)
        yield FindingDraft(
            rule="embedded-resource-removed",
            effect=Effect.ACCEPTED if kept else Effect.PRUNED,
            severity=WARNING if kept else None,
            message="no longer a resource: apiVersion, kind and metadata are "
            + ("not checked any more" if kept else "pruned unless the schema names them"),
        )


def docs(change: NodeChange) -> Iterator[FindingDraft]:
    if both(change) is not None:
        words = sorted(change.keywords & set(DOCS))
        yield FindingDraft(rule="docs-changed", message=f"{', '.join(words)} changed")


CHECKS = (
    NodeCheck(keywords(_PRESERVE), preserve),
    NodeCheck(keywords(_EMBEDDED), embedded),
    NodeCheck(keywords(*DOCS), docs),
)
