"""Validates ConfigMaps and Secrets: keys, sizes, and the data that each secret type requires.

Called by ``server/registry/kinds/configdata.py``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping

from instar.base.field_errors import FieldError, forbidden, invalid, key, required, too_long
from instar.base.json_values import Object
from instar.kube.builtin_rules.basics import config_key_errors

LARGEST = 1 << 20
"""Maximum bytes of all values together."""
_IMMUTABLE_TEXT = "field is immutable when `immutable` is set"
_ACCOUNT = "kubernetes.io/service-account.name"
_SECRET = "<secret contents redacted>"
_REQUIRED_KEYS: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_JSON = (".dockercfg", ".dockerconfigjson")
_NO_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name', "
    " or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def config_map_errors(obj: Object) -> list[FieldError]:
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    found: list[FieldError] = []
    for name in data:
        found += _key_errors(name, "data")
        if name in binary:
            text = "duplicate of key present in binaryData"
            found.append(invalid(key("data", name), name, text))
    for name in binary:
        found += _key_errors(name, "binaryData")
    size = sum(len(value.encode()) for value in data.values()) + _decoded_size(binary.values())
    if size > LARGEST:
        found.append(too_long("[]", LARGEST))
    return found


def secret_errors(obj: Object) -> list[FieldError]:
    data, type = obj.get("data") or {}, obj.get("type", "")
    found: list[FieldError] = []
    for name in data:
        found += _key_errors(name, "data")
    if _decoded_size(data.values()) > LARGEST:
        found.append(too_long("data", LARGEST))
    if type == "kubernetes.io/service-account-token":
        annotations = obj["metadata"].get("annotations") or {}
        if not annotations.get(_ACCOUNT):
            found.append(required(key("metadata.annotations", _ACCOUNT)))
    if type == "kubernetes.io/basic-auth" and not {"username", "password"} & set(data):
        found += [required(key("data", name)) for name in ("username", "password")]
    for name in _REQUIRED_KEYS.get(type, ()):
        if name not in data:
            found.append(required(key("data", name)))
        elif name in _JSON:
            found += _json_errors(data[name], key("data", name))
    return found


def frozen_errors(new: Object, old: Object, members: tuple[str, ...]) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    found: list[FieldError] = []
    if not new.get("immutable"):
        found.append(forbidden("immutable", _IMMUTABLE_TEXT))
    found += [
        forbidden(name, _IMMUTABLE_TEXT) for name in members if new.get(name) != old.get(name)
    ]
    return found


def _key_errors(name: str, path: str) -> list[FieldError]:
    where = key(path, name)
    return config_key_errors(name, where) if name else [invalid(where, name, _NO_KEY)]


def _decoded_size(values: Iterable[str]) -> int:
    """Return the total size of base64 texts when decoded."""
    return sum(len(text) * 3 // 4 - text.count("=", -2) for text in values if text)


def _json_errors(encoded: str, path: str) -> list[FieldError]:
    try:
        json.loads(base64.b64decode(encoded))
    except ValueError as error:
        return [invalid(path, _SECRET, _go_message(base64.b64decode(encoded), error))]
    return []


def _go_message(text: bytes, error: ValueError) -> str:
    """Return the message of Go's JSON decoder for invalid JSON."""
    literals = {ord("n"): "null", ord("t"): "true", ord("f"): "false"}
    stripped = text.lstrip()
    if not stripped:
        return "unexpected end of JSON input"
    literal = literals.get(stripped[0])
    if literal is None:
        return f"invalid character '{chr(stripped[0])}' looking for beginning of value"
    for position in range(1, len(literal)):
        if position >= len(stripped):
            return "unexpected end of JSON input"
        if chr(stripped[position]) != literal[position]:
            shown = chr(stripped[position])
            return (
                f"invalid character '{shown}' in literal {literal} "
                f"(expecting '{literal[position]}')"
            )
    return "unexpected end of JSON input"
