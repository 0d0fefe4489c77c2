"""YAML or JSON text as documents that remember their lines. Pure: text in, values out.

Kubernetes reads YAML as JSON, so dates stay text and every key is a string.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from instar.plain import Object
from instar.reviewer.report import Pointer, Problem

CRD_KIND = "CustomResourceDefinition"
_CRD_GROUP = "apiextensions.k8s.io/"
_BETA_SCHEMA = ("spec", "validation")


class _Loader(yaml.CSafeLoader):
    """YAML's dates are plain strings to Kubernetes."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, expression) for tag, expression in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True, eq=False)
class Document:
    """One document of a text."""

    value: Any
    file: str
    node: yaml.Node | None = None

    @property
    def line(self) -> int:
        return 0 if self.node is None else int(self.node.start_mark.line) + 1

    def line_of(self, pointer: Pointer) -> int:
        """The line of a place; of the nearest one around it when it is not written out."""
        if self.node is None:
            return 0
        line, depth = _find(self.node, pointer)
        if pointer[3:4] == ("schema",) and depth < 4:
            return _find(self.node, (*_BETA_SCHEMA, *pointer[4:]))[0]
        if pointer[:2] == _BETA_SCHEMA and depth < 2:
            return _find(self.node, ("spec", "versions", 0, "schema", *pointer[2:]))[0]
        return line


def documents(text: str, file: str) -> tuple[list[Document], list[Problem]]:
    """Every document; text that cannot be parsed ends the list with one problem."""
    found: list[Document] = []
    try:
        loader = _Loader(text)
    except yaml.YAMLError as error:
        return [], [_problem(error, file)]
    try:
        while loader.check_node():
            node = loader.get_node()
            value = loader.construct_document(node)
            if node is not None:
                found += _unlisted(_text_keys(value), file, node)
    except (yaml.YAMLError, ValueError, TypeError) as error:
        return found, [_problem(error, file)]
    finally:
        loader.dispose()
    return found, []


def is_crd(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("kind") == CRD_KIND
        and str(value.get("apiVersion", "")).startswith(_CRD_GROUP)
    )


def crd_problem(document: Document) -> Problem | None:
    """Why a document that calls itself a CRD cannot be reviewed."""
    value = document.value
    if str(value.get("apiVersion", "")).removeprefix(_CRD_GROUP) not in ("v1", "v1beta1"):
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
    return Problem(message, document.file, document.line_of(pointer))


def _unlisted(value: Any, file: str, node: yaml.Node) -> Iterator[Document]:
    """The members of a ``List``, or the document itself; empty documents are none."""
    if value is None:
        return
    items = value.get("items") if isinstance(value, dict) else None
    if isinstance(items, list) and str(value.get("kind", "")).endswith("List"):
        nodes = _member(node, "items")
        for position, item in enumerate(items):
            below = nodes.value[position] if isinstance(nodes, yaml.SequenceNode) else node
            yield Document(item, file, below)
        return
    yield Document(value, file, node)


def _text_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _text_keys(item) for name, item in value.items()}
    return [_text_keys(item) for item in value] if isinstance(value, list) else value


def _find(node: yaml.Node, pointer: Pointer) -> tuple[int, int]:
    """Line of the deepest place on the way, and how deep that is."""
    line = int(node.start_mark.line) + 1
    for depth, token in enumerate(pointer):
        key, below = _step(node, token)
        if below is None:
            return line, depth
        node = below
        line = int((key or below).start_mark.line) + 1
    return line, len(pointer)


def _step(node: yaml.Node, token: str | int) -> tuple[yaml.Node | None, yaml.Node | None]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == token:
                return key, value
    if isinstance(node, yaml.SequenceNode) and isinstance(token, int) and token < len(node.value):
        return None, node.value[token]
    return None, None


def _member(node: yaml.Node, name: str) -> yaml.Node | None:
    return _step(node, name)[1]


def _problem(error: Exception, file: str) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    said = getattr(error, "problem", None) or " ".join(str(error).split())
    return Problem(f"not readable as YAML: {said}", file, mark.line + 1 if mark else 0)
