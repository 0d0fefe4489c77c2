"""Reads the CRDs that a check is about, and objects of users, from manifests.

``instar check``, ``instar convert``, ``instar.testing`` and the console call this;
``instar/tools/manifest_files.py`` opens the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from instar.base.json_values import Object
from instar.base.plurals import counted
from instar.kube.api.crd import KIND, Crd
from instar.kube.api.crd_codec import CrdDecodeError
from instar.kube.api.encoding.manifests import UnreadableManifest, documents, members
from instar.kube.crds.documents import read_definition
from instar.tools.sdk.checking.case import Uncheckable


def parse_crd(document: Mapping[str, Any]) -> Crd:
    """Parse a v1 or v1beta1 document into a ``Crd``."""
    if document.get("kind") != KIND:
        raise Uncheckable(f"expected a {KIND}, got {document.get('kind')!r}")
    try:
        return read_definition(document).crd
    except CrdDecodeError as error:
        raise Uncheckable(f"not a usable CRD: {error}") from None


def crd_in(text: str, file: str, name: str | None = None) -> Crd:
    """Return the only CRD of a text, or the one named ``name``."""
    found = _documents(text, file)
    if name is not None:
        found = [each for each in found if (each.get("metadata") or {}).get("name") == name]
    if len(found) != 1:
        which = "" if name is None else f" called {name}"
        raise Uncheckable(f"{file} holds {counted(len(found), 'CRD')}{which}; it must be one")
    return parse_crd(found[0])


def crds_in(text: str, file: str) -> list[Crd]:
    """Return every CRD of a text; other documents are ignored."""
    try:
        return [read_definition(each).crd for each in _documents(text, file)]
    except CrdDecodeError as error:
        raise Uncheckable(f"{file}: not a usable CRD: {error}") from None


def objects_in(texts: Iterable[tuple[str, str]], crd: Crd) -> dict[str, list[Object]]:
    """Return the objects of a CRD in files (name and text), by version.

    Raises ``Uncheckable`` when there is none, because the user has named these files for them.
    """
    found: dict[str, list[Object]] = {}
    for file, text in texts:
        for value in _values(text, file):
            group, _, version = str(value.get("apiVersion") or "").rpartition("/")
            if (group, value.get("kind")) == (crd.group, crd.names.kind):
                found.setdefault(version, []).append(_framed(value, crd))
    if not found:
        raise Uncheckable(f"--objects: the files hold no {crd.names.kind} of {crd.group}")
    return found


def _framed(value: Object, crd: Crd) -> Object:
    """Return the object with the metadata that the conversion contract is checked with."""
    metadata = value.get("metadata")
    frame: Object = {"name": "a", "uid": "u1"}
    if crd.namespaced:
        frame["namespace"] = "default"
    return {**value, "metadata": {**frame, **(metadata if isinstance(metadata, dict) else {})}}


def _documents(text: str, file: str) -> list[Object]:
    return [value for value in _values(text, file) if value.get("kind") == KIND]


def _values(text: str, file: str) -> list[Object]:
    try:
        values = [each.value for document in documents(text, file) for each in members(document)]
    except UnreadableManifest as error:
        raise Uncheckable(str(error)) from None
    return [value for value in values if isinstance(value, dict)]
