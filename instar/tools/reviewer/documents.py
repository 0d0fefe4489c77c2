"""Sorts the documents of a manifest for the reviewer into CRDs and unusable documents, and finds
the line numbers of fields in them.

``sources.py`` calls it with the texts it read.
"""

from __future__ import annotations

from instar.base.json_values import Object, Pointer
from instar.kube.api.crd import GROUP
from instar.kube.api.encoding.manifests import Document, UnreadableManifest, members
from instar.kube.api.encoding.manifests import documents as read_documents
from instar.tools.reviewer.report import Problem

_BETA_SCHEMA = ("spec", "validation")


def documents(text: str, file: str) -> tuple[list[Document], list[Problem]]:
    """Return every document; a parse error ends the list with one problem."""
    found: list[Document] = []
    try:
        for document in read_documents(text, file):
            found += members(document)
    except UnreadableManifest as error:
        return found, [Problem(f"not readable as YAML: {error.problem}", file, error.line)]
    return found, []


def line_of(document: Document, pointer: Pointer) -> int:
    """Return the line of a path in a CRD of either API version, v1 or v1beta1."""
    line, depth = document.find(pointer)
    if pointer[3:4] == ("schema",) and depth < 4:
        return document.find((*_BETA_SCHEMA, *pointer[4:]))[0]
    if pointer[:2] == _BETA_SCHEMA and depth < 2:
        return document.find(("spec", "versions", 0, "schema", *pointer[2:]))[0]
    return line


def crd_problem(document: Document) -> Problem | None:
    """Return why a CRD document cannot be reviewed."""
    value = document.value
    if str(value.get("apiVersion", "")).removeprefix(f"{GROUP}/") not in ("v1", "v1beta1"):
        return _bad(document, ("apiVersion",), f"{value['apiVersion']} is neither v1 nor v1beta1")
    spec = value.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("names"), dict):
        return _bad(document, ("spec",), "not a usable CRD: spec.names is missing")
    versions = spec.get("versions")
    if not isinstance(versions, list) and not spec.get("version"):
        return _bad(document, ("spec",), "not a usable CRD: it has no versions")
    if not all(isinstance(item, dict) and item.get("name") for item in versions or ()):
        return _bad(document, ("spec", "versions"), "not a usable CRD: a version has no name")
    if not crd_name(value):
        return _bad(document, ("metadata",), "not a usable CRD: it has no name")
    return None


def crd_name(value: Object) -> str:
    return str((value.get("metadata") or {}).get("name") or "")


def _bad(document: Document, pointer: Pointer, message: str) -> Problem:
    return Problem(message, document.file, line_of(document, pointer))
