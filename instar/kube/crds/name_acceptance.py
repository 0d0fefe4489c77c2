"""Decides which names (plural, kind, short names …) a CRD gets, given those in use in its group.

Called by ``conditions.py``, which writes the result into the status, and by the CRD controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object, same_json


@dataclass(frozen=True, slots=True)
class NameAcceptance:
    """The decision about the names of a CRD: the accepted ones, and the reason for it."""

    ok: bool
    reason: str
    message: str
    accepted: Object


def names_settled(crd: Object) -> bool:
    """Return whether the requested names are the accepted ones, so that no other CRD matters."""
    return same_json(
        _go_names(crd["spec"]["names"]), _go_names(crd["status"].get("acceptedNames") or {})
    )


def decide_names(crd: Object, others: Sequence[Object]) -> NameAcceptance | None:
    """Return the accepted names and conflicts; None if the requested names are already accepted.

    The CRD's own accepted names count as used, as upstream's do. Of several conflicts the last one
    checked is reported.
    """
    if names_settled(crd):
        return None
    wanted, held = crd["spec"]["names"], crd["status"].get("acceptedNames") or {}
    resources, kinds = _used_names([crd, *others], crd["spec"].get("group", ""))
    accepted = dict(held)
    conflict = ("", "")
    for field, used, reason in (
        ("plural", resources, "PluralConflict"),
        ("singular", resources, "SingularConflict"),
        ("shortNames", resources, "ShortNamesConflict"),
        ("kind", kinds, "KindConflict"),
        ("listKind", kinds, "ListKindConflict"),
    ):
        problem = _problem(field, wanted, held, used)
        if problem:
            conflict = (reason, problem)
        else:
            accepted[field] = wanted.get(field)
    accepted["categories"] = wanted.get("categories")
    reason, message = conflict if conflict[0] else ("NoConflicts", "no conflicts found")
    return NameAcceptance(not conflict[0], reason, message, _go_names(accepted))


def _problem(field: str, wanted: Object, held: Object, used: set[str]) -> str:
    if field == "shortNames":
        own = held.get("shortNames") or []
        taken = [name for name in wanted.get("shortNames") or [] if name not in own]
    else:
        name = wanted.get(field) or ""
        taken = [] if name == (held.get(field) or "") else [name]
    clashes = dict.fromkeys(f'"{name}" is already in use' for name in taken if name in used)
    texts = list(clashes)
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


def _used_names(crds: Iterable[Object], group: str) -> tuple[set[str], set[str]]:
    resources: set[str] = set()
    kinds: set[str] = set()
    for crd in crds:
        if crd["spec"].get("group") != group:
            continue
        names = (crd.get("status") or {}).get("acceptedNames") or {}
        resources.update((names.get("plural", ""), names.get("singular", "")))
        resources.update(names.get("shortNames") or ())
        kinds.update((names.get("kind", ""), names.get("listKind", "")))
    return resources - {""}, kinds - {""}


def _go_names(names: Object) -> Object:
    """Return the names as Go prints them: plural and kind always, the rest when set."""
    out = {name: value for name, value in names.items() if value}
    return {"plural": "", "kind": "", **out}
