"""Merges an applied configuration into the live object, by the list and map types of the schema.

Called by ``applying.py`` and by mutating policies. The merge removes no fields; ``pruning.py``
removes them. The result may share subtrees with both inputs.
"""

from __future__ import annotations

from typing import Any

from instar.kube.apply.owned_paths import DEDUCED_MAP, index_by_element
from instar.kube.apply.ownership_schema import (
    DEDUCED,
    Atom,
    BadItem,
    ListType,
    MapType,
    TypedSchema,
    item_element,
)


def merge(schema: TypedSchema, live: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Return ``config`` merged over ``live``."""
    return _merge_map(schema.root.map or DEDUCED_MAP, live, config)


def _merge_value(atom: Atom, live: Any, config: Any) -> Any:
    """Merge one value; an explicit null replaces an atomic value, but does not empty a shared
    map or list."""
    kind, items = atom.map or DEDUCED_MAP, atom.list
    if isinstance(live, dict) and live and not kind.atomic:
        if config is None:
            return live
        if isinstance(config, dict):
            return _merge_map(kind, live, config)
    if isinstance(live, list) and live and items is not None and items.relation != "atomic":
        if config is None and atom.map is None and atom.scalar is None:
            return live
        if isinstance(config, list):
            return _merge_items(items, live, config)
    return config


def _merge_map(kind: MapType, live: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    out = dict(live)
    for name, value in config.items():
        if name in live:
            known = kind.fields.get(name)
            atom = known[1] if known is not None else kind.element or DEDUCED
            value = _merge_value(atom, live[name], value)
        out[name] = value
    return out


def _merge_items(kind: ListType, live: list[Any], config: list[Any]) -> list[Any]:
    """Merge items by key.

    Items of both lists come in the order of ``config``; an item only in ``live`` keeps its place
    between its neighbours; new items follow the order of ``config``.
    """
    before, wanted = index_by_element(kind, live), index_by_element(kind, config)
    keyed_live = [(_element(kind, item), item) for item in live]
    order = list(wanted)
    shared = [element for element in order if element in before]
    out: list[Any] = []
    done: set[str] = set()

    def place(element: str) -> None:
        done.add(element)
        if shared and shared[0] == element:
            shared.pop(0)
        copies = before.get(element, [])
        value = wanted[element][0]
        out.append(_merge_value(kind.element, copies[0], value) if len(copies) == 1 else value)

    position = 0
    for element, item in keyed_live:
        if element not in wanted:
            out.append(item)
            continue
        if element in done or (shared and shared[0] != element):
            continue
        while position < len(order) and order[position] != element:
            place(order[position])
            position += 1
        place(element)
        position += 1
    for element in order[position:]:
        place(element)
    return out


def _element(kind: ListType, item: Any) -> str:
    try:
        return item_element(kind, item)
    except BadItem:
        return ""
