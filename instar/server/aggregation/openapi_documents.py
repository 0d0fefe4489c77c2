"""OpenAPI documents of backends: what belongs to a group version, names that clash, v2 as v3.

``openapi_sync.py`` and ``endpoints/openapi.py`` call it. Pure functions; large documents are
handled in a thread by the callers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha512
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson

from instar.base.json_values import Object, same_json
from instar.kube.openapi.v2 import DocumentPart

_V2_REF, _V3_REF = "#/definitions/", "#/components/schemas/"
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
_SCHEMA_PARTS = ("type", "format", "items", "uniqueItems", "enum", "default", "pattern")


def read_v2(body: bytes) -> DocumentPart:
    """Paths and definitions of a v2 document. Raises ``ValueError``."""
    found = orjson.loads(body)  # its error is a ValueError
    if not isinstance(found, dict):
        raise ValueError("the document is not an object")
    return DocumentPart(_members(found.get("paths")), _members(found.get("definitions")))


def _members(found: Any) -> Object:
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise ValueError("expected an object of objects")
    return found


def part_of(document: DocumentPart, prefix: str) -> DocumentPart:
    """The paths below ``prefix`` and the definitions that they reach."""
    paths = {path: one for path, one in document.paths.items() if path.startswith(f"{prefix}/")}
    definitions: Object = {}
    waiting = [_names(one) for one in paths.values()]
    while waiting:
        for name in waiting.pop():
            if name in document.definitions and name not in definitions:
                definitions[name] = document.definitions[name]
                waiting.append(_names(definitions[name]))
    return DocumentPart(dict(sorted(paths.items())), dict(sorted(definitions.items())))


def _names(value: Any) -> list[str]:
    """Names of the definitions that a value refers to."""
    found: list[str] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            ref = one.get("$ref")
            if isinstance(ref, str) and ref.startswith(_V2_REF):
                found.append(ref.removeprefix(_V2_REF))
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return found


def without_versions(part: DocumentPart, group: str, versions: Iterable[str]) -> DocumentPart:
    """A part without the paths and definitions of some versions of its group."""
    paths_gone = tuple(f"/apis/{group}/{version}/" for version in versions)
    names_gone = tuple(definition_prefix(group, version) for version in versions)
    return DocumentPart(
        {path: one for path, one in part.paths.items() if not f"{path}/".startswith(paths_gone)},
        {name: one for name, one in part.definitions.items() if not name.startswith(names_gone)},
    )


def definition_prefix(group: str, version: str) -> str:
    """How the names of a group version's definitions begin."""
    return f"{'.'.join(reversed(group.split('.')))}.{version}."


class Definitions:
    """The definitions of a document so far: another part's definition of a taken name is shared if
    it says the same, and renamed if not."""

    def __init__(self, known: Mapping[str, Any], reserved: tuple[str, ...]) -> None:
        """``reserved``: how names begin that are taken without being known."""
        self._known, self._reserved = dict(known), reserved

    def add(self, part: DocumentPart) -> DocumentPart:
        """The part as it can be added."""
        names: dict[str, str] = {}
        shared: set[str] = set()
        for name, definition in part.definitions.items():
            if name in self._known and same_json(self._known[name], definition):
                shared.add(name)
            elif name in self._known or name.startswith(self._reserved):
                names[name] = self._free_name(name)
        if names:
            part = DocumentPart(_renamed(part.paths, names), _renamed(part.definitions, names))
        added = {
            names.get(name, name): one
            for name, one in part.definitions.items()
            if name not in shared
        }
        self._known |= added
        return DocumentPart(part.paths, dict(sorted(added.items())))

    def _free_name(self, name: str) -> str:
        number = 2
        while f"{name}_v{number}" in self._known:
            number += 1
        return f"{name}_v{number}"


def _renamed(value: Any, names: Mapping[str, str], *, to: str = _V2_REF) -> Any:
    """A copy in which references have other names, or lead to the place of v3."""
    if isinstance(value, list):
        return [_renamed(one, names, to=to) for one in value]
    if not isinstance(value, dict):
        return value
    found = {key: _renamed(one, names, to=to) for key, one in value.items()}
    ref = found.get("$ref")
    if isinstance(ref, str) and ref.startswith(_V2_REF):
        name = ref.removeprefix(_V2_REF)
        found["$ref"] = to + names.get(name, name)
    return found


def read_index(body: bytes, keys: Iterable[str]) -> dict[str, str]:
    """Key of the v3 root → hash of its document, for these keys and no others: a backend says
    nothing about what is not routed to it. Raises ``ValueError``."""
    found = orjson.loads(body)  # its error is a ValueError
    paths = _members(found.get("paths") if isinstance(found, dict) else [])
    return {key: _hash(key, paths[key].get("serverRelativeURL")) for key in keys if key in paths}


def _hash(key: str, url: Any) -> str:
    parts = urlsplit(url if isinstance(url, str) else "")
    told = parse_qs(parts.query).get("hash", [""])[0]
    if parts.path == f"/openapi/v3/{key}" and told.isalnum():
        return told
    return sha512(str(url).encode()).hexdigest().upper()


def as_v3(part: DocumentPart, title: str) -> Object:
    """A v2 part as a v3 document, for a backend that has no v3."""
    return {
        "openapi": "3.0.0",
        "info": {"title": title, "version": "unversioned"},
        "paths": {path: _v3_path(one) for path, one in part.paths.items()},
        "components": {"schemas": _renamed(part.definitions, {}, to=_V3_REF)},
    }


def _v3_path(path: Mapping[str, Any]) -> Object:
    found: Object = {}
    if isinstance(path.get("parameters"), list):
        found["parameters"] = _v3_parameters(path["parameters"])
    for method in _METHODS:
        if isinstance(path.get(method), dict):
            found[method] = _v3_operation(path[method])
    return found


def _v3_operation(operation: Mapping[str, Any]) -> Object:
    given = operation.get("parameters")
    parameters = given if isinstance(given, list) else []
    found = {
        name: value
        for name, value in operation.items()
        if name not in ("consumes", "produces", "schemes", "parameters", "responses")
    }
    if parameters:
        found["parameters"] = _v3_parameters(parameters)
    body = next((one for one in parameters if _is_body(one)), None)
    if body is not None:
        media = operation.get("consumes") or ["*/*"]
        found["requestBody"] = {"content": _content(body.get("schema"), media)}
        if body.get("required") is True:
            found["requestBody"]["required"] = True
    responses = operation.get("responses")
    found["responses"] = {
        code: _v3_response(one, operation.get("produces") or [])
        for code, one in (responses if isinstance(responses, dict) else {}).items()
        if isinstance(one, dict)
    }
    return found


def _is_body(parameter: Any) -> bool:
    return isinstance(parameter, dict) and parameter.get("in") == "body"


def _v3_parameters(parameters: list[Any]) -> list[Object]:
    return [
        {
            **{name: value for name, value in one.items() if name not in _SCHEMA_PARTS},
            "schema": {name: one[name] for name in _SCHEMA_PARTS if name in one},
        }
        for one in parameters
        if isinstance(one, dict) and not _is_body(one)
    ]


def _v3_response(response: Mapping[str, Any], media: Any) -> Object:
    found: Object = {"description": response.get("description", "")}
    if "schema" in response and isinstance(media, list):
        found["content"] = _content(response["schema"], media)
    return found


def _content(schema: Any, media: Any) -> Object:
    told = {"schema": _renamed(schema or {}, {}, to=_V3_REF)}
    return {str(one): told for one in media} if isinstance(media, list) else {}
