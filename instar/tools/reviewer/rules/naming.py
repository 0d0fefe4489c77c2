"""Review rules about scope and names of a resource.

``rules/__init__.py`` lists them, ``engine.py`` runs their checks.
"""

from __future__ import annotations

from collections.abc import Iterator

from instar.tools.reviewer.reviewed_crd import ReviewedCrd
from instar.tools.reviewer.rule_kit import (
    CLIENTS,
    ERROR,
    INFO,
    READERS,
    STORED,
    WARNING,
    WRITERS,
    CrdCheck,
    FindingDraft,
    ReviewRule,
)

RULES = (
    ReviewRule(
        "scope-changed",
        ERROR,
        "objects live at other paths; the API server refuses the update of an established CRD",
        (WRITERS, READERS, STORED, CLIENTS),
    ),
    ReviewRule(
        "kind-changed",
        ERROR,
        "objects carry another kind; the API server refuses the update of an established CRD",
        (WRITERS, READERS, STORED, CLIENTS),
    ),
    ReviewRule("list-kind-changed", WARNING, "lists carry another kind", (READERS, CLIENTS)),
    ReviewRule(
        "singular-changed", WARNING, "the singular name on the command line changed", (READERS,)
    ),
    ReviewRule("short-name-removed", WARNING, "a short name people type is gone", (READERS,)),
    ReviewRule("short-name-added", INFO, "a new short name, which may collide", (READERS,)),
    ReviewRule("category-removed", WARNING, "kubectl get of a category shows less", (READERS,)),
    ReviewRule("category-added", INFO, "kubectl get of a category shows more", (READERS,)),
)


def scope(old: ReviewedCrd, new: ReviewedCrd) -> Iterator[FindingDraft]:
    before, after = (_scope(side) for side in (old, new))
    if before != after:
        yield FindingDraft(
            rule="scope-changed",
            pointer=("spec", "scope"),
            path="spec.scope",
            message=f"{before} became {after}",
            why_no_witness="every object is concerned, not one",
        )


def _scope(side: ReviewedCrd) -> str:
    return "Namespaced" if side.crd.namespaced else "Cluster"


def single_names(old: ReviewedCrd, new: ReviewedCrd) -> Iterator[FindingDraft]:
    before, after = old.crd.names, new.crd.names
    for rule, keyword, was, now in (
        ("kind-changed", "kind", before.kind, after.kind),
        ("list-kind-changed", "listKind", before.list_kind, after.list_kind),
        ("singular-changed", "singular", before.singular, after.singular),
    ):
        if was != now:
            yield FindingDraft(
                rule=rule,
                pointer=("spec", "names", keyword),
                path=f"spec.names.{keyword}",
                message=f"{was} became {now}",
                why_no_witness="every object is concerned, not one",
            )


def many_names(old: ReviewedCrd, new: ReviewedCrd) -> Iterator[FindingDraft]:
    before, after = old.crd.names, new.crd.names
    for word, keyword, was, now in (
        ("short-name", "shortNames", before.short_names, after.short_names),
        ("category", "categories", before.categories, after.categories),
    ):
        for name in sorted(set(was) - set(now)):
            yield _name(f"{word}-removed", keyword, name, "is gone")
        for name in sorted(set(now) - set(was)):
            yield _name(f"{word}-added", keyword, name, "is new")


def _name(rule: str, keyword: str, name: str, what: str) -> FindingDraft:
    return FindingDraft(
        rule=rule,
        key=name,
        pointer=("spec", "names", keyword),
        path=f"spec.names.{keyword}",
        message=f"{name} {what}",
        why_no_witness="a name is no object",
    )


CHECKS = (
    CrdCheck(("scope",), scope),
    CrdCheck(("names.kind", "names.listKind", "names.singular", "names.plural"), single_names),
    CrdCheck(("names.shortNames", "names.categories"), many_names),
)
