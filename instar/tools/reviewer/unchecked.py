"""Finds changes of a CRD outside its schemas that no rule covers; ``engine.py`` reports them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from instar.tools.reviewer.reviewed_crd import ReviewedCrd
from instar.tools.reviewer.rule_kit import CrdCheck, FindingDraft

_COMPARED_ELSEWHERE = ("versions[].schema", "group")
"""Parts that are compared elsewhere: schemas node by node, the group as part of the name."""
_BOOKKEEPING = ("kubectl.kubernetes.io/last-applied-configuration",)
"""Annotations that are not compared."""


def crd_changes(
    old: ReviewedCrd, new: ReviewedCrd, checks: Sequence[CrdCheck]
) -> Iterator[FindingDraft]:
    claims = (*_COMPARED_ELSEWHERE, *(claim for check in checks for claim in check.claims))
    before, after = _flat(_by_version(old.raw["spec"])), _flat(_by_version(new.raw["spec"]))
    places = sorted({place for place in {*before, *after} if before.get(place) != after.get(place)})
    for generic, place in places:
        if not generic.startswith(claims):
            yield FindingDraft(
                rule="unclaimed-change",
                path=f"spec.{place}",
                pointer=("spec",),
                message=f"{place} changed",
                why_no_witness="no rule knows what it means",
            )
    yield from _metadata(old.given, new.given)


def _by_version(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec with its versions as a mapping by name."""
    versions = {item.get("name", ""): item for item in spec.get("versions") or ()}
    return {**spec, "versions": versions}


def _flat(spec: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Return leaf values by (generic path, path); lists count as leaves."""
    found: dict[tuple[str, str], str] = {}

    def visit(generic: str, place: str, value: Any) -> None:
        if generic.startswith("versions[].schema"):
            return
        if isinstance(value, Mapping) and value:
            for name, item in value.items():
                if generic == "versions":
                    visit("versions[]", f"versions[{name}]", item)
                else:
                    dot = "." if generic else ""
                    visit(f"{generic}{dot}{name}", f"{place}{dot}{name}", item)
        elif value not in (None, [], {}):
            found[generic, place] = repr(value)

    visit("", "", spec)
    return found


def _metadata(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[FindingDraft]:
    for word in ("annotations", "labels"):
        before, after = (
            {
                name: value
                for name, value in ((side.get("metadata") or {}).get(word) or {}).items()
                if name not in _BOOKKEEPING
            }
            for side in (old, new)
        )
        names = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
        if names:
            yield FindingDraft(
                rule="metadata-changed",
                path=f"metadata.{word}",
                pointer=("metadata", word),
                message=f"{word} changed: {', '.join(names)}",
            )
