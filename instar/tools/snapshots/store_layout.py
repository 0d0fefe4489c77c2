"""Store keys and bytes of captured objects. Pure.

``loading.py`` and rehearsals call it. uid, times, generation, managedFields, status and version are
kept; ``resourceVersion`` belongs to the old store and is dropped. A manifest that no server has
seen gets deterministic values for the fields it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import NAMESPACE_URL, uuid5

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.api.encoding.json_text import encode_sorted
from instar.kube.facts.resources import ResourceFacts, resources
from instar.wire.storage.keys import collection_prefix

_STORE_FIELDS = ("resourceVersion", "selfLink")
"""Fields of metadata that belong to the old store; they are dropped."""


class Misplaced(Exception):
    """An object that does not belong to the collection; ``str()`` is the reason."""


@dataclass(frozen=True)
class StoreCollection:
    """A collection of the store: key prefix, group, kind and scope."""

    group: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def prefix(self) -> str:
        return collection_prefix(self.group, self.plural)


@dataclass(frozen=True)
class PlacedObject:
    """Key and value of an object in a store."""

    key: str
    value: bytes
    namespace: str
    version: str


def place_of_crd(crd: Object) -> StoreCollection:
    spec = crd["spec"]
    names = spec["names"]
    return StoreCollection(
        spec["group"], names["plural"], names["kind"], spec.get("scope") != "Cluster"
    )


def builtin_places() -> Mapping[tuple[str, str], ResourceFacts]:
    """Return the built-in collections by ``apiVersion`` and kind."""
    return {(facts.api_version, facts.kind): facts for facts in resources() if "get" in facts.verbs}


def place_object(obj: Object, place: StoreCollection, now: str) -> PlacedObject:
    """Return key and bytes of an object. Raises ``Misplaced``."""
    group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
    if group != place.group or not version:
        raise Misplaced("is of another group")
    if obj.get("kind") != place.kind:
        raise Misplaced("is of another kind")
    given = obj.get("metadata")
    if not isinstance(given, dict):
        raise Misplaced("has no metadata")
    metadata = {name: value for name, value in given.items() if name not in _STORE_FIELDS}
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if place.namespaced:
        namespace = metadata["namespace"] = namespace or "default"
    else:
        metadata.pop("namespace", None)
        namespace = ""
    if not is_name(name) or not (namespace == "" or is_name(namespace)):
        raise Misplaced("has no name that an object can have")
    suffix = f"{namespace}/{name}" if namespace else str(name)
    key = place.prefix + suffix
    if not isinstance(metadata.get("uid"), str) or not metadata["uid"]:
        metadata["uid"] = str(uuid5(NAMESPACE_URL, f"instar:{key}"))
    metadata.setdefault("creationTimestamp", now)
    metadata.setdefault("generation", 1)
    return PlacedObject(key, _encoded({**obj, "metadata": metadata}), str(namespace), version)


def _encoded(obj: Object) -> bytes:
    try:
        return encode_sorted(obj) + b"\n"
    except (TypeError, ValueError):
        raise Misplaced("cannot be written as JSON") from None


def is_name(value: object) -> bool:
    """Return whether the value is a valid path segment."""
    if not isinstance(value, str) or not 0 < len(value) <= 253 or value in (".", ".."):
        return False
    return "/" not in value and "%" not in value and value.isprintable()
