"""List merging of strategic merge patches: matching items, directives and resulting order.

Called by ``strategic_patch.py``, which passes in the merge key; a list without a merge key consists
of scalars.
"""

from __future__ import annotations

from math import inf
from typing import Any

from instar.base.errors import Invalid, Unclassified
from instar.base.field_errors import go_plain
from instar.base.json_values import same_json

PATCH = "$patch"

Pair = tuple[Any, Any]
"""The key of an item, and the item."""


def identity(value: Any) -> Any:
    """Return a hashable key that is equal for values equal in Go: numbers are not booleans, and
    integers not floats."""
    return object() if isinstance(value, dict | list) else (value.__class__, value)


def element_kind(*lists: list[Any]) -> type:
    """Return the one type of all items of the lists."""
    kinds: set[type] = {item.__class__ for items in lists for item in items}
    if not kinds:
        raise Unclassified("no elements in any of the given slices")
    if len(kinds) > 1 or type(None) in kinds:
        raise Unclassified(f"list element types are not identical: {go_plain(list(lists))}")
    if list in kinds:
        raise Invalid("the server rejected our request due to an error in our request", details={})
    return next(iter(kinds))


def merge_scalars(old: list[Any], new: list[Any], *, deleting: bool) -> list[Any]:
    """Return the union of both lists, or the old one without the new. All items have one type."""
    if deleting:
        gone = set(new)
        return [item for item in old if item not in gone]
    return sort_by_patch_order(list(dict.fromkeys([*old, *new])), new, old, None)


def split_directed(old: list[Any], new: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Apply the items that are directives; return the rest of the old list and the items to
    merge."""
    additions: list[Any] = []
    gone: set[Any] = set()
    replacing = False
    for item in new:
        if PATCH not in item:
            additions.append(item)
            continue
        match item[PATCH]:
            case "delete":
                if key not in item:
                    raise without_key(item, key)
                gone.add(identity(item[key]))
            case "replace":
                replacing = True
            case "merge":
                raise Unclassified("merging lists cannot yet be specified in the patch")
            case _:
                raise unknown_directive(item)
    if replacing:
        return additions, []
    if not gone:
        return old, additions
    return [item for item in old if identity(item.get(key)) not in gone], additions


def sort_by_patch_order(
    items: list[Any], order: list[Any], server: list[Any], key: str | None
) -> list[Any]:
    """Sort items that ``order`` names in its order, others as on the server.

    Where the two meet, an item only on the server goes first if it stood before the other there.
    Without a key the items are scalars of one type, and other values in ``order`` are ignored.
    """
    if key is None:
        order = [name for name in order if not isinstance(name, dict | list)]
    wanted, known = _ranks(_names(order, key)), _ranks(_names(server, key))
    named: list[Pair] = []
    others: list[Pair] = []
    for pair in zip(_names(items, key), items, strict=True):
        (named if pair[0] in wanted else others).append(pair)
    named.sort(key=lambda pair: wanted[pair[0]])
    others.sort(key=lambda pair: known.get(pair[0], inf))
    return _interleave(others, named, known)


def _interleave(others: list[Pair], named: list[Pair], known: dict[Any, int]) -> list[Any]:
    result: list[Any] = []
    at, ranks = 0, [known.get(own, inf) for own, _ in others]
    for own, item in named:
        limit = known.get(own, -1)
        while at < len(others) and ranks[at] < limit:
            result.append(others[at][1])
            at += 1
        result.append(item)
    return [*result, *(item for _, item in others[at:])]


def _names(items: list[Any], key: str | None) -> list[Any]:
    """Return the keys of the items."""
    return items if key is None else [_name(item, key) for item in items]


def _name(item: Any, key: str) -> Any:
    if not isinstance(item, dict):
        raise bad_type({}, item)
    if key not in item:
        raise without_key(item, key)
    return identity(item[key])


def _ranks(names: list[Any]) -> dict[Any, int]:
    """Return the first position of each key."""
    return dict(zip(reversed(names), range(len(names) - 1, -1, -1), strict=True))


def check_order(new: list[Any], order: list[Any], key: str) -> None:
    """Check that the patch's items are in the order of ``$setElementOrder``, which must name
    them all."""
    if not new or not order:
        return
    left = [item for item in new if not (isinstance(item, dict) and PATCH in item)]
    at = 0
    for wanted in order:
        if at == len(left):
            return
        if _name(left[at], key) == _name(wanted, key) if key else same_json(left[at], wanted):
            at += 1
    if at < len(left):
        raise Unclassified(
            f"The order in patch list:\n{go_plain(new)}\n doesn't match $setElementOrder list:\n"
            f"{go_plain(order)}\n"
        )


def unknown_directive(patch: dict[str, Any]) -> Unclassified:
    directive = patch[PATCH]
    shown = directive if isinstance(directive, str) else go_plain(directive)
    return Unclassified(f"unknown patch type: {shown} in map: {go_plain(patch)}")


def without_key(item: dict[str, Any], key: str) -> Unclassified:
    return Unclassified(f"map: {go_plain(item)} does not contain declared merge key: {key}")


_GO_TYPES = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    type(None): "%!s(<nil>)",
}


def bad_type(expected: Any, found: Any) -> Unclassified:
    wanted, got = _GO_TYPES[type(expected)], _GO_TYPES[type(found)]
    return Unclassified(f"expected a {wanted}, but received a {got}")
