"""What the built-in kinds do differently from custom resources, one strategy each."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from instar.api.gojson import go_type
from instar.api.patch_types import OF_BUILTIN
from instar.api.strings import dns1035_label, dns1123_label
from instar.fields import FieldError, forbidden, invalid
from instar.plain import Object
from instar.registry.resources.strategy import Strategy, Warn
from instar.schema.objectmeta import NameRule, name_is_path_segment

if TYPE_CHECKING:
    from instar.registry.resources.serving import VersionServing

_IMMUTABLE = "field is immutable when `immutable` is set"


class CoreStrategy(Strategy):
    """Core kinds: last write wins without a resourceVersion, strategic patches, no generation."""

    unconditional_update = True
    scheme = "pkg/api/legacyscheme/scheme.go:30"
    piecewise = False
    patch_types = OF_BUILTIN

    def decode(self, obj: Object, version: VersionServing) -> list[str]:
        self.refuse_other_kinds(obj, version)
        return super().decode(obj, version)

    def prepare_create(self, obj: Object, version: VersionServing) -> None:
        obj["metadata"].pop("generation", None)
        if version.has_status:
            obj.pop("status", None)

    def prepare_update(self, new: Object, old: Object, version: VersionServing) -> None:
        super().prepare_update(new, old, version)
        new["metadata"].pop("generation", None)

    def from_storage(self, obj: Object, version: VersionServing) -> None:
        super().from_storage(obj, version)
        obj["metadata"].pop("generation", None)


class NamespaceStrategy(CoreStrategy):
    name_rule: NameRule = staticmethod(lambda name, prefix: dns1123_label(name.rstrip("-")))

    def prepare_create(self, obj: Object, version: VersionServing) -> None:
        super().prepare_create(obj, version)
        finalizers = (obj.get("spec") or {}).get("finalizers") or []
        if "kubernetes" not in finalizers:
            obj["spec"] = {"finalizers": [*finalizers, "kubernetes"]}
        obj["status"] = {"phase": "Active"}
        _label_name(obj)

    def prepare_update(self, new: Object, old: Object, version: VersionServing) -> None:
        super().prepare_update(new, old, version)
        new["spec"] = old.get("spec", {})
        _label_name(new)

    def prepare_subresource(
        self, subresource: str, new: Object, old: Object, version: VersionServing
    ) -> None:
        """``finalize`` is how a controller takes its own finalizer off ``spec``."""
        if subresource == "finalize":
            new["status"] = old.get("status", {})
        else:
            super().prepare_subresource(subresource, new, old, version)

    def mark_deleting(self, stored: Object, now: str) -> bool:
        """Emptied first by the namespace controller, which then takes the finalizer off."""
        metadata = stored["metadata"]
        if "deletionTimestamp" not in metadata:
            metadata["deletionTimestamp"] = now
            stored["status"] = {**stored.get("status", {}), "phase": "Terminating"}
        return True

    def gone_when_released(self, obj: Object) -> bool:
        return not (obj.get("spec") or {}).get("finalizers")


class ConfigMapStrategy(CoreStrategy):
    def check_update(
        self, new: Object, old: Object, version: VersionServing, subresource: str, warn: Warn
    ) -> list[FieldError]:
        found = super().check_update(new, old, version, subresource, warn)
        return found + _immutable_errors(new, old, ("data", "binaryData"))


class SecretStrategy(CoreStrategy):
    def decode(self, obj: Object, version: VersionServing) -> list[str]:
        unknown = super().decode(obj, version)
        plain = obj.pop("stringData", None)
        if plain is not None:
            self._check_plain(obj, version, plain)
            encoded = {k: base64.b64encode(v.encode()).decode() for k, v in plain.items()}
            obj["data"] = {**(obj.get("data") or {}), **encoded}
        obj.setdefault("type", "Opaque")
        return unknown

    def _check_plain(self, obj: Object, version: VersionServing, plain: Any) -> None:
        where = "into Go struct field Secret.stringData of type"
        if not isinstance(plain, dict):
            text = f"json: cannot unmarshal {go_type(plain)} {where} map[string]string"
            raise self.undecodable(obj, version, text)
        for text in plain.values():
            if not isinstance(text, str):
                text = f"json: cannot unmarshal {go_type(text)} {where} string"
                raise self.undecodable(obj, version, text)

    def check_create(self, obj: Object, version: VersionServing, warn: Warn) -> list[FieldError]:
        return super().check_create(obj, version, warn) + _data_errors(obj)

    def check_update(
        self, new: Object, old: Object, version: VersionServing, subresource: str, warn: Warn
    ) -> list[FieldError]:
        found = super().check_update(new, old, version, subresource, warn)
        if new.get("type") != old.get("type"):
            found.append(invalid("type", new.get("type"), "field is immutable"))
        found += _immutable_errors(new, old, ("data",))
        return found + _data_errors(new)


class ServiceStrategy(CoreStrategy):
    name_rule: NameRule = staticmethod(lambda name, prefix: dns1035_label(name.rstrip("-")))

    def decode(self, obj: Object, version: VersionServing) -> list[str]:
        unknown = super().decode(obj, version)
        spec = obj.get("spec")
        if isinstance(spec, dict):
            spec.setdefault("type", "ClusterIP")
            spec.setdefault("sessionAffinity", "None")
            for port in spec.get("ports") or ():
                if isinstance(port, dict):
                    port.setdefault("protocol", "TCP")
                    port.setdefault("targetPort", port.get("port"))
        return unknown


class LooseNameStrategy(CoreStrategy):
    """Events: any path segment is a name."""

    name_rule: NameRule = staticmethod(name_is_path_segment)


class SecondEventStrategy(LooseNameStrategy):
    """events.k8s.io: kept in the core group's form."""

    reshapes = True


class EphemeralStrategy(CoreStrategy):
    """Reviews: asked and answered, never stored."""


def _immutable_errors(new: Object, old: Object, members: tuple[str, ...]) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    found: list[FieldError] = []
    if not new.get("immutable"):
        found.append(forbidden("immutable", _IMMUTABLE))
    found += [forbidden(name, _IMMUTABLE) for name in members if new.get(name) != old.get(name)]
    return found


def _label_name(obj: Object) -> None:
    labels = obj["metadata"].setdefault("labels", {})
    labels["kubernetes.io/metadata.name"] = obj["metadata"].get("name", "")


def _data_errors(obj: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for key, text in (obj.get("data") or {}).items():
        try:
            base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError, TypeError):
            found.append(invalid(f"data[{key}]", text, "must be base64"))
    return found
