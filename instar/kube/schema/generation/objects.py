"""Hypothesis strategies for whole objects that fit a structural schema.

Called by ``tools/sdk/checking/search.py`` (``instar check``). Most objects are valid; callers
filter the rest with ``CompiledSchema``. Import this module lazily, because importing hypothesis is
slow.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from hypothesis import strategies as st

from instar.kube.schema.generation.leaves import ANY_JSON, KEYS, number_strategy, text_strategy
from instar.kube.schema.generation.list_items import without_duplicates
from instar.kube.schema.structure.structural import Structural

Draw = Callable[[st.SearchStrategy[Any]], Any]
Overlays = tuple[Mapping[str, Any], ...]
"""Raw schemas that apply to one value at once: its own, and those of chosen branches."""
Focus = tuple[str, ...]

_FRAME = ("apiVersion", "kind", "metadata")
_FEW = 8
_ITEM = "[]"


def objects(root: Structural, *, api_version: str, kind: str, namespaced: bool = True) -> Any:
    """Return a strategy of whole objects.

    Each draw targets one random field deep inside, so that rare fields of large schemas are
    covered.
    """
    places: list[Focus] = [(), *_leaves(root, ())]
    node = Structural(
        type="object",
        properties={k: v for k, v in root.properties.items() if k not in _FRAME},
        additional=root.additional,
        preserve_unknown=root.preserve_unknown,
        raw=root.raw,
    )

    aim, frame, made = st.sampled_from(places), _metadata(namespaced), _Strategies()

    @st.composite
    def build(draw: Draw) -> dict[str, Any]:
        content = _Maker(draw, made).object(node, (node.raw,), draw(aim), 0)
        metadata = draw(frame)
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}

    return build()


def values(node: Structural) -> Any:
    """Return a strategy of values for one schema node."""

    made = _Strategies()

    @st.composite
    def build(draw: Draw) -> Any:
        return _Maker(draw, made).value(node, (node.raw,), (), 1)

    return build()


def _metadata(namespaced: bool) -> Any:
    name = st.sampled_from(["a", "b", "my-object"])
    uid = st.sampled_from(["u1", "u2"])
    required: dict[str, Any] = {"name": name, "uid": uid}
    if namespaced:
        required["namespace"] = st.just("default")
    optional: dict[str, Any] = {
        "labels": st.fixed_dictionaries({"app": st.sampled_from(["x", "y"])}),
        "annotations": st.fixed_dictionaries({"note": KEYS}),
        "generation": st.just(2),
        "finalizers": st.just(["example.com/hold"]),
    }
    return st.fixed_dictionaries(required, optional=optional)


def _leaves(node: Structural, path: Focus) -> Iterable[Focus]:
    children = [(name, inner) for name, inner in node.properties.items() if path or _content(name)]
    if node.items is not None:
        children.append((_ITEM, node.items))
    if isinstance(node.additional, Structural):
        children.append((_ITEM, node.additional))
    if path:
        yield path
    for name, inner in children:
        yield from _leaves(inner, (*path, name))


def _content(name: str) -> bool:
    return name not in _FRAME


class _Strategies:
    """Strategies of a schema, created once, because creating them costs more than drawing from
    them.

    Keyed by the identity of raw schemas, which the schema's root keeps alive.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[Any, ...], Any] = {}

    def leaf(self, kind: str, overlays: Overlays) -> Any:
        key = (kind, *map(id, overlays))
        if key not in self._made:
            make = text_strategy if kind == "string" else partial(number_strategy, kind)
            self._made[key] = make(overlays)
        return self._made[key]

    def one_of(self, options: Sequence[Any]) -> Any:
        key = ("one", *map(id, options))
        if key not in self._made:
            # Keep the options alive, so that no other object can reuse their ids.
            self._made[key] = st.sampled_from(options), list(options)
        return self._made[key][0]

    def excluding(
        self, chosen: Mapping[str, Any], branches: Sequence[Mapping[str, Any]]
    ) -> list[Mapping[str, Any]]:
        """Return schemas that keep the other branches from matching too: their fields are left
        out."""
        needed = set(_list(chosen.get("required")))
        others = {name for each in branches for name in _list(each.get("required"))}
        return [
            self._made.setdefault(("not", name), {"not": {"required": [name]}})
            for name in sorted(others - needed)
        ]

    def some_of(self, names: Sequence[str], most: int) -> Any:
        key = ("some", most, *names)
        if key not in self._made:
            self._made[key] = st.lists(st.sampled_from(names), unique=True, max_size=most)
        return self._made[key]


class _Maker:
    """Draws one value. A class only to pass ``draw`` through the recursion."""

    def __init__(self, draw: Draw, made: _Strategies) -> None:
        self._draw = draw
        self._made = made

    def value(self, node: Structural, overlays: Overlays, focus: Focus, depth: int) -> Any:
        overlays = self._chosen(overlays)
        if node.nullable and not focus and self._draw(_RARELY):
            return None
        enum = _enum(overlays)
        if enum is not None:
            return self._draw(self._made.one_of(enum)) if enum else None
        if node.int_or_string:
            kind = "integer" if self._draw(_EITHER) else "string"
        else:
            kind = node.type or _stated_type(overlays)
        if kind == "object":
            return self.object(node, overlays, focus, depth)
        if kind == "array":
            return self._array(node, overlays, focus, depth)
        if kind in ("string", "integer", "number"):
            return self._draw(self._made.leaf(kind, overlays))
        if kind == "boolean":
            return self._draw(_EITHER)
        return self._draw(ANY_JSON)

    def object(
        self, node: Structural, overlays: Overlays, focus: Focus, depth: int
    ) -> dict[str, Any]:
        # The root's branches are chosen here; those of all other nodes in ``value``.
        chosen = overlays if depth else self._chosen(overlays)
        required = {name for raw in chosen for name in raw.get("required") or ()}
        required |= set(_EMBEDDED) if node.embedded else set()
        forbidden = {
            name
            for raw in chosen
            for name in _list((raw.get("not") or {}).get("required"))
            if len(_list((raw.get("not") or {}).get("required"))) == 1
        }
        known = {**node.properties, **{name: Structural() for name in _EMBEDDED if node.embedded}}
        names = [
            name for name in known if name in required or (name == focus[0] if focus else False)
        ]
        names += self._optional([n for n in known if n not in names and n not in forbidden], depth)
        result: dict[str, Any] = {}
        for name in known:
            if name not in names:
                continue
            if node.embedded and name in _EMBEDDED:
                result[name] = copy.deepcopy(_EMBEDDED[name])
                continue
            inner = known[name]
            rest = focus[1:] if focus and focus[0] == name else ()
            below = _below(inner, chosen, "properties", name)
            result[name] = self.value(inner, below, rest, depth + 1)
        self._extras(node, chosen, result, focus, depth)
        return result

    def _optional(self, names: Sequence[str], depth: int) -> list[str]:
        if not names:
            return []
        if depth > 8:
            return []
        if len(names) <= _FEW and depth < 3:
            return [name for name in names if self._draw(_EITHER)]
        return list(self._draw(self._made.some_of(names, max(1, 5 - depth))))

    def _extras(
        self,
        node: Structural,
        overlays: Overlays,
        result: dict[str, Any],
        focus: Focus,
        depth: int,
    ) -> None:
        least = max([_int(raw.get("minProperties"), 0) for raw in overlays], default=0)
        most = min([_int(raw.get("maxProperties"), 3) for raw in overlays], default=3)
        aimed = bool(focus) and focus[0] == _ITEM
        least = max(least - len(result), 1 if aimed else 0)
        most = max(min(most - len(result), 3), least)
        inner = node.additional
        if isinstance(inner, Structural):
            keys = self._draw(st.lists(KEYS, unique=True, min_size=least, max_size=most))
            for position, key in enumerate(keys):
                rest = focus[1:] if aimed and position == 0 else ()
                below = _below(inner, overlays, "additionalProperties", "")
                result[key] = self.value(inner, below, rest, depth + 1)
        elif inner is True or (node.preserve_unknown and depth):
            extra = self._draw(st.dictionaries(KEYS, ANY_JSON, min_size=least, max_size=2))
            for key, value in extra.items():
                result.setdefault(key, value)

    def _array(self, node: Structural, overlays: Overlays, focus: Focus, depth: int) -> list[Any]:
        least = max(_int(raw.get("minItems"), 0) for raw in overlays)
        most = min(_int(raw.get("maxItems"), 10**9) for raw in overlays)
        if node.items is None:
            return list(self._draw(st.lists(ANY_JSON, min_size=least, max_size=max(least, 2))))
        aimed = bool(focus) and focus[0] == _ITEM
        lower = max(least, 1 if aimed and most else 0)
        size = self._draw(st.integers(lower, max(lower, min(most, least + 2, 50))))
        items: list[Any] = []
        below = _below(node.items, overlays, "items", "")
        for position in range(size):
            rest = focus[1:] if aimed and position == 0 else ()
            items.append(self.value(node.items, below, rest, depth + 1))
        return without_duplicates(node, items) if len(items) > 1 else items

    def _chosen(self, overlays: Overlays) -> Overlays:
        """Return the overlays with one branch picked of every ``anyOf`` and ``oneOf``."""
        result: list[Mapping[str, Any]] = []
        waiting = list(overlays)
        while waiting:
            raw = waiting.pop(0)
            result.append(raw)
            waiting += [item for item in raw.get("allOf") or () if isinstance(item, Mapping)]
            for word in ("anyOf", "oneOf"):
                branches = [item for item in raw.get(word) or () if isinstance(item, Mapping)]
                if branches:
                    branch = self._draw(self._made.one_of(branches))
                    waiting.append(branch)
                    if word == "oneOf":
                        result += self._made.excluding(branch, branches)
        return tuple(result)


_EITHER = st.booleans()
_RARELY = st.sampled_from([False, False, False, True])
_EMBEDDED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "inner"}}


def _below(node: Structural, overlays: Overlays, word: str, name: str) -> Overlays:
    """Return the schemas of a child: its own (the parent may have dropped it, see
    ``kube/schema/structure/interning.py``) and those of the parent's branches."""
    found = [node.raw]
    for raw in overlays:
        inner = raw.get(word)
        inner = inner.get(name) if name and isinstance(inner, Mapping) else inner
        if isinstance(inner, Mapping) and inner is not node.raw:
            found.append(inner)
    return tuple(found)


def _enum(overlays: Overlays) -> list[Any] | None:
    allowed: list[Any] | None = None
    for raw in overlays:
        listed = raw.get("enum")
        if listed is not None:
            allowed = list(listed) if allowed is None else [v for v in allowed if v in listed]
    return allowed


def _stated_type(overlays: Overlays) -> str:
    return next((str(raw["type"]) for raw in overlays if raw.get("type")), "")


def _int(value: Any, default: int) -> int:
    return int(value) if isinstance(value, int | float) else default


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
