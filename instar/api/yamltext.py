"""YAML in and out. Imported only when a client speaks YAML: most never do.

Reads as Kubernetes does: YAML 1.1 scalars, string keys, repeated keys reported by line.
"""

from __future__ import annotations

import math
from typing import Any

import yaml

from instar.api.objecttext import MAX_DEPTH_TEXT, Malformed

try:
    from yaml import CSafeDumper as _Dumper
    from yaml import CSafeLoader as _Loader
except ImportError:  # pragma: no cover - wheels ship libyaml
    from yaml import SafeDumper as _Dumper  # type: ignore[assignment]
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

_ALIASED = 10_000
"""Nodes that aliases may repeat; a document that wants more wants to explode."""
_MAX_DEPTH = 200


class NotYaml(Malformed):
    """Text that is no YAML, and the line where it stops being some; 0 when that is not known."""

    def __init__(self, problem: str, line: int = 0) -> None:
        where = f"line {line}: " if line else ""
        super().__init__(f"error converting YAML to JSON: yaml: {where}{problem}")
        self.problem, self.line = problem, line


def read_yaml(body: bytes, *, typed_keys: bool = False) -> tuple[Any, list[str]]:
    """The document, and a text per repeated key: ``line 7: key "a" already set in map``.

    ``typed_keys`` is for documents that Kubernetes never sees: there a key may be a number.
    """
    try:
        _check_depth(body)
        node = yaml.compose(body, Loader=_Loader)
    except yaml.YAMLError as error:
        raise _not_yaml(error) from error
    except RecursionError as error:
        raise Malformed(f"json parse error: {MAX_DEPTH_TEXT}") from error
    if node is None:
        return None, []
    reader = _Reader(typed_keys)
    return reader.value(node, 0), reader.duplicates


def _check_depth(body: bytes) -> None:
    """libyaml composes by recursion in C, which deep nesting would crash; its events are flat.

    Only a long line or many brackets can nest deeply, so most bodies are parsed once.
    """
    brackets = body.count(b"[") + body.count(b"{")
    if brackets <= _MAX_DEPTH and all(len(line) <= _MAX_DEPTH for line in body.splitlines()):
        return
    depth = 0
    for event in yaml.parse(body, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                raise Malformed(f"json parse error: {MAX_DEPTH_TEXT}")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def write_yaml(value: Any) -> bytes:
    text: str = yaml.dump(value, Dumper=_Dumper, default_flow_style=False, allow_unicode=True)
    return text.encode()


class _Reader:
    """Builds plain values from nodes; counts them, so aliases cannot explode."""

    def __init__(self, typed_keys: bool) -> None:
        self._typed_keys = typed_keys
        self.duplicates: list[str] = []
        self._seen: set[int] = set()
        self._repeated = 0
        self._constructor = yaml.constructor.SafeConstructor()

    def value(self, node: yaml.Node, depth: int) -> Any:
        if id(node) in self._seen:
            self._repeated += 1
        self._seen.add(id(node))
        if self._repeated > _ALIASED:
            raise Malformed(
                "error converting YAML to JSON: yaml: document contains excessive aliasing"
            )
        if depth > _MAX_DEPTH:
            raise Malformed(f"json parse error: {MAX_DEPTH_TEXT}")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[Any, Any]:
        self._constructor.flatten_mapping(node)
        result: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node)
            if key in result:
                line = key_node.start_mark.line + 1
                self.duplicates.append(f'line {line}: key "{key}" already set in map')
            result[key] = self.value(value_node, depth + 1)
        return result

    def _key(self, node: yaml.Node) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            raise Malformed("error converting YAML to JSON: unsupported map key")
        value = self._scalar(node)
        if self._typed_keys:
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(node.value) if not isinstance(value, str) else value

    def _scalar(self, node: yaml.Node) -> Any:
        if node.tag == "tag:yaml.org,2002:timestamp":
            return node.value
        if node.tag == "tag:yaml.org,2002:binary":
            return "".join(str(node.value).split())
        try:
            return _as_json(self._constructor.construct_object(node))
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            raise Malformed(f"error converting YAML to JSON: yaml: {error}") from error


def _as_json(value: Any) -> Any:
    """Numbers as JSON has them: what does not fit int64 is a float, and a float is finite."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"json: unsupported value: {value}")
    return value


def _not_yaml(error: yaml.YAMLError) -> NotYaml:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return NotYaml(problem, mark.line + 1 if mark is not None else 0)
