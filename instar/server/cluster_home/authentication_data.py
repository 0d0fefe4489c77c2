"""Reads ``kube-system/extension-apiserver-authentication``: what kube-apiserver announces to
servers behind its aggregation layer.

``trust.py`` calls it at the start and after each change. The module only parses.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from instar.base.json_values import Object

NAMESPACE, NAME = "kube-system", "extension-apiserver-authentication"
PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


class AnnouncedProxies(NamedTuple):
    """How the main cluster's aggregation layer identifies itself and its clients."""

    ca: bytes
    names: tuple[str, ...]
    """Common names of the proxies; none: any that the CA has signed."""
    user_headers: tuple[str, ...]
    uid_headers: tuple[str, ...]
    group_headers: tuple[str, ...]
    extra_prefixes: tuple[str, ...]


class AuthenticationData(NamedTuple):
    client_ca: bytes
    """Certificates of the CAs of ordinary clients; empty if none is announced."""
    proxies: AnnouncedProxies | None


def read_authentication(config_map: Object) -> AuthenticationData:
    """Raises ``ValueError`` for data that cannot be used."""
    data = config_map.get("data")
    found = data if isinstance(data, dict) else {}
    return AuthenticationData(_pem(found, "client-ca-file"), _proxies(found))


def _proxies(data: dict[str, Any]) -> AnnouncedProxies | None:
    ca = _pem(data, "requestheader-client-ca-file")
    users = _names(data, "requestheader-username-headers")
    if not ca or not users:
        return None
    return AnnouncedProxies(
        ca,
        _names(data, "requestheader-allowed-names"),
        users,
        _names(data, "requestheader-uid-headers"),
        _names(data, "requestheader-group-headers"),
        _names(data, "requestheader-extra-headers-prefix"),
    )


def _pem(data: dict[str, Any], key: str) -> bytes:
    text = data.get(key) or ""
    if not isinstance(text, str):
        raise ValueError(f"ConfigMap {NAMESPACE}/{NAME}: {key} is not a text")
    return text.encode()


def _names(data: dict[str, Any], key: str) -> tuple[str, ...]:
    text = data.get(key) or "[]"
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        found = None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise ValueError(f"ConfigMap {NAMESPACE}/{NAME}: {key} is not a JSON list of texts")
    return tuple(found)
