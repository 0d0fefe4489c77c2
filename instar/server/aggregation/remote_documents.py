"""Discovery documents of backends, read with distrust: only what the format has, in its types.

``discovery_sync.py`` calls it. What cannot be read raises ``ValueError``, so that one backend that
sends nonsense never spoils the document of all groups. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from instar.base.json_values import Object

_KIND = ("group", "version", "kind")
_TEXTS = ("singularResource",)
_LISTS = ("verbs", "shortNames", "categories")
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=%s;as=APIGroupDiscoveryList"
ACCEPT = f"{AGGREGATED % 'v2'},{AGGREGATED % 'v2beta1'}"
Versions = dict[tuple[str, str], Object]
"""Group and version → the entry of aggregated discovery."""


def is_aggregated(content_type: str) -> bool:
    """Whether a response is an APIGroupDiscoveryList."""
    media, *given = (part.strip() for part in content_type.split(";"))
    parameters = dict(part.split("=", 1) for part in given if "=" in part)
    return (
        media == "application/json"
        and parameters.get("g") == "apidiscovery.k8s.io"
        and parameters.get("v") in ("v2", "v2beta1")
        and parameters.get("as") == "APIGroupDiscoveryList"
    )


def read_aggregated(body: bytes) -> Versions:
    """The versions of an aggregated discovery document. Raises ``ValueError``."""
    found: Versions = {}
    for group in _objects(_document(body).get("items")):
        name = _text((group.get("metadata") or {}).get("name", ""))
        for version in _objects(group.get("versions")):
            resources = [_resource(one) for one in _objects(version.get("resources"))]
            text = _text(version.get("version"))
            found[name, text] = {"version": text, "resources": resources}
    return found


def read_resource_list(body: bytes, version: str) -> Object:
    """The entry that an APIResourceList stands for. Raises ``ValueError``."""
    found: dict[str, Object] = {}
    listed = list(_objects(_document(body).get("resources")))
    for one in listed:
        name = _text(one.get("name"))
        if "/" not in name:
            found[name] = _listed_resource(name, one)
    for one in listed:
        parent, slash, part = _text(one.get("name")).partition("/")
        if slash:
            owner = found.setdefault(
                parent,
                {"resource": parent, "responseKind": _kind({}), "scope": _scope(one), "verbs": []},
            )
            verbs = _texts(one.get("verbs"))
            subresource = {"subresource": part, "responseKind": _kind(one), "verbs": verbs}
            owner.setdefault("subresources", []).append(subresource)
    return {"version": version, "resources": list(found.values())}


def stale(version: str) -> Object:
    """The entry of a version whose server does not tell what it serves."""
    return {"version": version, "freshness": "Stale"}


def current(version: str, entry: Object | None) -> Object:
    """The entry as it is shown, without resources where its server does not know the version."""
    resources = (entry or {}).get("resources")
    return {"version": version, **({"resources": resources} if resources else {}), **_CURRENT}


_CURRENT = {"freshness": "Current"}


def _listed_resource(name: str, one: Mapping[str, Any]) -> Object:
    found: Object = {"resource": name, "responseKind": _kind(one), "scope": _scope(one)}
    found["singularResource"] = _text(one.get("singularName", ""))
    return found | _lists(one)


def _scope(one: Mapping[str, Any]) -> str:
    return "Namespaced" if one.get("namespaced") is True else "Cluster"


def _resource(one: Mapping[str, Any]) -> Object:
    found: Object = {
        "resource": _text(one.get("resource")),
        "responseKind": _kind(one.get("responseKind") or {}),
        "scope": _text(one.get("scope", "Cluster")),
    }
    found |= {name: _text(one[name]) for name in _TEXTS if name in one}
    found |= _lists(one)
    subresources = [
        {
            "subresource": _text(each.get("subresource")),
            "responseKind": _kind(each.get("responseKind") or {}),
            **_lists(each),
        }
        for each in _objects(one.get("subresources"))
    ]
    return found | ({"subresources": subresources} if subresources else {})


def _lists(one: Mapping[str, Any]) -> Object:
    found = {name: _texts(one.get(name)) for name in _LISTS if one.get(name)}
    return {"verbs": [], **found}


def _kind(one: Any) -> Object:
    """A kind, complete: old clients fail on a resource without one."""
    if not isinstance(one, dict):
        raise ValueError("a kind is not an object")
    return {name: _text(one.get(name) or "") for name in _KIND}


def _document(body: bytes) -> Mapping[str, Any]:
    found = orjson.loads(body)  # its error is a ValueError
    if not isinstance(found, dict):
        raise ValueError("the document is not an object")
    return found


def _objects(found: Any) -> Iterable[Mapping[str, Any]]:
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ValueError("expected a list of objects")
    return found


def _text(found: Any) -> str:
    if not isinstance(found, str):
        raise ValueError("expected a text")
    return found


def _texts(found: Any) -> list[str]:
    return [_text(one) for one in found] if isinstance(found, list) else []
