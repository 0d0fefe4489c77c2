"""Unknown fields and embedded resources: what a node keeps, drops or demands by extension."""

from __future__ import annotations

from collections.abc import Iterator

from instar.reviewer.changes import NodeChange
from instar.reviewer.report import Effect
from instar.reviewer.rulekit import (
    CLIENTS,
    ERROR,
    OFF,
    READERS,
    STORED,
    WARNING,
    WRITERS,
    Draft,
    NodeCheck,
    Rule,
    both,
    keywords,
)

RULES = (
    Rule(
        "preserve-unknown-removed",
        ERROR,
        "a node no longer keeps fields its schema does not know: they are pruned",
        (STORED, WRITERS, READERS),
    ),
    Rule(
        "preserve-unknown-added",
        WARNING,
        "a node keeps fields nothing validates; clients cannot know them",
        (READERS, CLIENTS),
    ),
    Rule(
        "embedded-resource-added",
        ERROR,
        "a node must be a whole resource now: apiVersion and kind are demanded",
        (WRITERS, STORED),
    ),
    Rule(
        "embedded-resource-removed",
        ERROR,
        "a node is no longer a resource: apiVersion, kind and metadata are not kept by themselves",
        (STORED, WRITERS, READERS),
    ),
    Rule("docs-changed", OFF, "a description, title or example changed"),
)

_PRESERVE, _EMBEDDED = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"
DOCS = ("description", "title", "example", "externalDocs", "id", "$schema")


def preserve(change: NodeChange) -> Iterator[Draft]:
    pair = both(change)
    if pair is None:
        return
    if pair[0].get(_PRESERVE):
        yield Draft(
            rule="preserve-unknown-removed",
            effect=Effect.PRUNED,
            message="unknown fields were kept here and are pruned now",
        )
    else:
        yield Draft(
            rule="preserve-unknown-added",
            effect=Effect.ACCEPTED,
            message="unknown fields are kept here now, unvalidated",
        )


def embedded(change: NodeChange) -> Iterator[Draft]:
    pair = both(change)
    if pair is None:
        return
    if pair[1].get(_EMBEDDED):
        yield Draft(
            rule="embedded-resource-added",
            effect=Effect.REFUSED,
            message="must be a whole resource now, with apiVersion and kind",
        )
    else:
        kept = pair[1].get(_PRESERVE)
        yield Draft(
            rule="embedded-resource-removed",
            effect=Effect.ACCEPTED if kept else Effect.PRUNED,
            severity=WARNING if kept else None,
            message="no longer a resource: apiVersion, kind and metadata are "
            + ("not checked any more" if kept else "pruned unless the schema names them"),
        )


def docs(change: NodeChange) -> Iterator[Draft]:
    if both(change) is not None:
        words = sorted(change.keywords & set(DOCS))
        yield Draft(rule="docs-changed", message=f"{', '.join(words)} changed")


CHECKS = (
    NodeCheck(keywords(_PRESERVE), preserve),
    NodeCheck(keywords(_EMBEDDED), embedded),
    NodeCheck(keywords(*DOCS), docs),
)
