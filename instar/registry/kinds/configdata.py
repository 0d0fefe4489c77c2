"""ConfigMaps and Secrets: named pieces of data, which may be frozen."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from instar.fields import FieldError, forbidden, invalid
from instar.plain import Object
from instar.registry.kinds.builtin import BuiltinStrategy

if TYPE_CHECKING:
    from instar.registry.resources.serving import VersionServing

_IMMUTABLE = "field is immutable when `immutable` is set"


class ConfigMapStrategy(BuiltinStrategy):
    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return _frozen_errors(new, old, ("data", "binaryData"))


class SecretStrategy(BuiltinStrategy):
    def default(self, obj: Object, version: VersionServing) -> None:
        plain = obj.pop("stringData", None)
        if plain:
            encoded = {k: base64.b64encode(v.encode()).decode() for k, v in plain.items()}
            obj["data"] = {**(obj.get("data") or {}), **encoded}
        obj.setdefault("type", "Opaque")

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        found = []
        if new.get("type") != old.get("type"):
            found.append(invalid("type", new.get("type"), "field is immutable"))
        return found + _frozen_errors(new, old, ("data",))


def _frozen_errors(new: Object, old: Object, members: tuple[str, ...]) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    found: list[FieldError] = []
    if not new.get("immutable"):
        found.append(forbidden("immutable", _IMMUTABLE))
    found += [forbidden(name, _IMMUTABLE) for name in members if new.get(name) != old.get(name)]
    return found
