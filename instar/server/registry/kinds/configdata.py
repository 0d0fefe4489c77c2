"""Strategies of ConfigMap and Secret, including immutable ones.

The verbs find them through ``strategy_table.py``; ``kube/builtin_rules`` has the validation rules.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from instar.base.json_values import Object
from instar.kube.builtin_rules.advice.tls_pairs import mismatch
from instar.kube.builtin_rules.basics import immutable_errors
from instar.kube.builtin_rules.configdata import config_map_errors, frozen_errors, secret_errors
from instar.server.registry.kinds.builtin import BuiltinStrategy

if TYPE_CHECKING:
    from instar.base.field_errors import FieldError
    from instar.server.registry.resources.serving import VersionServing


class ConfigMapStrategy(BuiltinStrategy):
    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return config_map_errors(obj)

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        return frozen_errors(new, old, ("data", "binaryData"))


class SecretStrategy(BuiltinStrategy):
    def default(self, obj: Object, version: VersionServing) -> None:
        plain = obj.pop("stringData", None)
        if plain:
            encoded = {k: base64.b64encode(v.encode()).decode() for k, v in plain.items()}
            obj["data"] = {**(obj.get("data") or {}), **encoded}
        obj.setdefault("type", "Opaque")

    def check(self, obj: Object, version: VersionServing) -> list[FieldError]:
        return secret_errors(obj)

    def advise(self, obj: Object, old: Object | None, version: VersionServing) -> list[str]:
        if obj.get("type") != "kubernetes.io/tls":
            return []
        data = obj["data"]
        certificate, key = (base64.b64decode(data[name] or "") for name in ("tls.crt", "tls.key"))
        reason = mismatch(certificate, key)
        return [] if reason is None else [reason]

    def check_change(self, new: Object, old: Object, version: VersionServing) -> list[FieldError]:
        found = immutable_errors(new.get("type"), old.get("type"), "type")
        return found + frozen_errors(new, old, ("data",))
