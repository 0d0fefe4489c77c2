"""Typed schemas as structured-merge-diff writes them, as the atoms of ``instar.kube.apply``."""

from __future__ import annotations

from typing import Any

from instar.kube.apply.ownership_schema import UNTYPED, Atom, ListType, MapType, TypedSchema

Type = dict[str, Any]


def typed_schema(schema: dict[str, Any], root: str = "") -> TypedSchema:
    """``root`` names another type than the one the schema starts at."""
    reader = _Reader(schema["types"])
    atom = reader.reference({"named": root} if root else schema["root"])
    assert atom is not None, "the root has a type"
    return TypedSchema(atom)


class _Reader:
    """Types may name each other in circles, so each is made once and filled in afterwards."""

    def __init__(self, types: dict[str, Type]) -> None:
        self._types = types
        self._made: dict[tuple[str, str], Atom] = {}

    def reference(self, ref: dict[str, Any]) -> Atom | None:
        relation = ref.get("rel") or ""
        name = ref.get("named")
        if name is None:
            inline = ref.get("inline") or {}
            return self._fill(Atom(), inline, relation) if inline else None
        known = self._made.get((name, relation))
        if known is None:
            known = self._made[name, relation] = Atom()
            self._fill(known, self._types.get(name, {}), relation)
        return known

    def _fill(self, atom: Atom, type: Type, relation: str) -> Atom:
        if type.get("scalar"):
            atom.scalar = type["scalar"]
        if type.get("list") is not None:
            atom.list = self._list(type["list"], relation)
        if type.get("map") is not None:
            atom.map = self._map(type["map"], relation)
        atom.loose = True
        return atom

    def _list(self, kind: dict[str, Any], relation: str) -> ListType:
        element = self.reference(kind["elem"]) or Atom(scalar=UNTYPED)
        keys = tuple(kind["keys"] or ())
        if (relation or kind["rel"]) != "associative":
            return ListType("atomic", element)
        if not keys:
            return ListType("set", element)
        fields = self._item_fields(kind["elem"])
        defaults = {name: fields[name] for name in keys if fields.get(name) is not None}
        return ListType("map", element, keys, defaults)

    def _item_fields(self, ref: dict[str, Any]) -> dict[str, Any]:
        type = self._types[ref["named"]] if "named" in ref else ref["inline"]
        fields = (type.get("map") or {}).get("fields") or ()
        return {field["name"]: field["default"] for field in fields}

    def _map(self, kind: dict[str, Any], relation: str) -> MapType:
        atomic = (relation or kind["rel"]) == "atomic"
        out = MapType(atomic, {}, self.reference(kind["elem"]))
        for field in kind["fields"]:
            atom = self.reference(field["type"])
            assert atom is not None, f"{field['name']} has a type"
            out.fields[field["name"]] = (f"f:{field['name']}", atom)
        return out
