"""YAML reader and writer that match kube-apiserver's.

Called by request and response encoding, the manifest reader and the CLI; imported lazily by the
server, because most clients never use YAML. libyaml parses the text into flat events; nesting,
duplicates and aliases are handled and bounded here. Scalars are resolved by ``go_yaml_scalars.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any, NamedTuple

import orjson
import yaml
from yaml import events

from instar.base.json_values import copy_json
from instar.base.limits import MAX_DEPTH
from instar.kube.api.encoding.go_yaml_scalars import (
    PREFIX,
    YamlError,
    go_g,
    json_number,
    key_text,
    needs_quotes,
    scalar,
)
from instar.kube.api.encoding.json_text import TooDeep, decode, duplicate_keys
from instar.kube.api.encoding.yaml_key_order import sort_keys

try:
    from yaml import CSafeDumper as _Dumper
    from yaml import CSafeLoader as _Loader
except ImportError:  # pragma: no cover - wheels ship libyaml
    from yaml import SafeDumper as _Dumper  # type: ignore[assignment]
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

_MOST_EXPANDED = 16 << 20
"""Characters of a document with its aliases expanded."""
_MOST_TAG_DIRECTIVES = 100
"""libyaml compares each directive with all others."""
_FEW, _MANY = 400_000, 4_000_000
_MERGE = object()
_FLOAT = re.compile(rb"[0-9][.eE][0-9+-]")


class _Read(NamedTuple):
    """A finished node and the cost of repeating it through an alias."""

    value: Any
    nodes: int
    size: int
    depth: int


class _Open:
    """A container that has not ended yet."""

    __slots__ = ("anchor", "at", "deepest", "key", "keys", "line", "size", "value")

    def __init__(self, value: Any, anchor: str | None, at: int, size: int, line: int) -> None:
        self.value = value
        self.anchor = anchor
        self.at = at
        self.size = size
        self.line = line
        self.deepest = 0
        self.key: Any = _Open
        self.keys: set[tuple[type, Any]] = set()


def read_yaml(body: bytes, *, typed_keys: bool = False, above: int = 0) -> tuple[Any, list[str]]:
    """Return the first document and a message per repeated key: ``line 7: key "a" already set in
    map``.

    ``typed_keys`` is for documents that Kubernetes never sees, where a key may be a number.
    ``above`` is the number of lines that the file has before this part. Raises ``YamlError`` or
    ``TooDeep``.
    """
    if body[:1] == b"{" and (document := _read_json(body)) is not None:
        return document, []
    if body.count(b"%TAG") > _MOST_TAG_DIRECTIVES:
        raise YamlError("yaml: too many %TAG directives")
    reader = _Reader(typed_keys, above)
    loader = _Loader(body)
    try:
        return reader.document(loader.get_event), reader.duplicates
    except yaml.YAMLError as error:
        raise YamlError(f"yaml: {_go_message(error)}") from error
    finally:
        loader.dispose()


def _read_json(body: bytes) -> Any:
    """Parse the body as JSON, which is much faster and the format of most apply requests; None if
    it is not plain JSON (or has duplicates to report)."""
    try:
        document = decode(body)
    except orjson.JSONDecodeError:
        return None
    if duplicate_keys(body, document, 1):
        return None
    if _FLOAT.search(body) is not None:
        _narrow(document)
    return document


def _narrow(value: Any) -> None:
    """Convert numbers to those of the YAML reader, in place."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if item.__class__ is float:
            value[key] = json_number(item)
        elif item.__class__ is dict or item.__class__ is list:
            _narrow(item)


def _go_message(error: yaml.YAMLError) -> str:
    """Return Go's message. It counts lines from 0, except for scanner errors; line 0 is not
    named."""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    line = _line(error, "problem_mark")
    if line and isinstance(error, yaml.scanner.ScannerError):
        line += 1
    line = line or _line(error, "context_mark")
    return f"line {line}: {problem}" if line else str(problem)


def _line(error: yaml.YAMLError, mark: str) -> int:
    found = getattr(error, mark, None)
    return 0 if found is None else int(found.line)


class _Reader:
    """Builds values from events on a stack; counts what aliases repeat before expanding them."""

    def __init__(self, typed_keys: bool, above: int) -> None:
        self._typed_keys, self._above = typed_keys, above
        self.duplicates: list[str] = []
        self._stack: list[_Open] = []
        self._anchors: dict[str, _Read | None] = {}
        self._count = 0
        self._aliased = 0
        self._size = 0
        self._result: Any = None

    def document(self, next_event: Callable[[], Any]) -> Any:
        while True:
            event = next_event()
            kind = type(event)
            if kind is events.ScalarEvent:
                self._scalar(event)
            elif kind is events.MappingStartEvent or kind is events.SequenceStartEvent:
                self._open({} if kind is events.MappingStartEvent else [], event)
            elif kind is events.MappingEndEvent or kind is events.SequenceEndEvent:
                self._close()
            elif kind is events.AliasEvent:
                self._alias(event)
            elif kind is events.DocumentStartEvent:
                _check_version(event)
            elif kind is events.DocumentEndEvent or kind is events.StreamEndEvent:
                return self._result

    def _scalar(self, event: Any) -> None:
        self._count += 1
        self._size += len(event.value)
        tag, plain = event.tag or "", event.implicit[0]
        if event.value == "<<" and (plain or tag == f"{PREFIX}merge") and self._wants_key():
            self._stack[-1].key = _MERGE
            return
        value = scalar(event.value, tag.removeprefix(PREFIX), plain=plain and not tag)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Read(value, 1, len(event.value), 0)
        self._place(value, event.start_mark.line, aliased=False)

    def _wants_key(self) -> bool:
        container = self._stack[-1] if self._stack else None
        return container is not None and container.key is _Open and type(container.value) is dict

    def _open(self, value: Any, event: Any) -> None:
        self._count += 1
        if len(self._stack) >= MAX_DEPTH:
            raise TooDeep
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        opened = _Open(value, event.anchor, self._count, self._size, event.start_mark.line)
        self._stack.append(opened)

    def _close(self) -> None:
        done = self._stack.pop()
        depth = done.deepest + 1
        if done.anchor is not None:
            count, size = self._count - done.at + 1, self._size - done.size
            self._anchors[done.anchor] = _Read(done.value, count, size, depth)
        if self._stack:
            self._stack[-1].deepest = max(self._stack[-1].deepest, depth)
        self._place(done.value, done.line, aliased=False)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            raise YamlError(f"yaml: unknown anchor '{event.anchor}' referenced")
        known = self._anchors[event.anchor]
        if known is None:
            raise YamlError(f"yaml: anchor '{event.anchor}' value contains itself")
        self._count += 1 + known.nodes
        self._aliased += known.nodes
        self._size += known.size
        if self._expands_too_much():
            raise YamlError("yaml: document contains excessive aliasing")
        if len(self._stack) + known.depth > MAX_DEPTH:
            raise TooDeep
        if self._stack:
            self._stack[-1].deepest = max(self._stack[-1].deepest, known.depth)
        self._place(copy_json(known.value), event.start_mark.line, aliased=True)

    def _expands_too_much(self) -> bool:
        """Return whether aliases expand too much; Go's library allows them 99 % of a small
        document and little of a large one."""
        if self._size > _MOST_EXPANDED:
            return True
        span = min(max(self._count - _FEW, 0) / (_MANY - _FEW), 1.0)
        allowed = 0.99 - 0.89 * span
        return self._aliased > 100 and self._count > 1000 and self._aliased > allowed * self._count

    def _place(self, value: Any, line: int, *, aliased: bool) -> None:
        """Add a complete value to its container."""
        if not self._stack:
            self._result = _as_json(value)
            return
        container = self._stack[-1]
        if isinstance(container.value, list):
            container.value.append(_as_json(value))
        elif container.key is _Open:
            if isinstance(value, dict | list):
                raise YamlError(f"yaml: invalid map key: {_go_literal(value)}")
            container.key = value
        else:
            key, container.key = container.key, _Open
            if key is _MERGE:
                self._merge(container, value, line, aliased)
            else:
                self._set(container, key, _as_json(value), line)

    def _set(self, container: _Open, key: Any, value: Any, line: int) -> None:
        name = key_text(key)
        identity = (type(key), key)
        if identity in container.keys:
            shown = f'"{key}"' if isinstance(key, str) else name
            self.duplicates.append(f"line {self._above + line + 1}: key {shown} already set in map")
        container.keys.add(identity)
        container.value[key if self._typed_keys else name] = value

    def _merge(self, container: _Open, value: Any, line: int, aliased: bool) -> None:
        """Merge ``<<``: later merges win; of a list, the first entry wins."""
        sources = value[::-1] if isinstance(value, list) and not aliased else [value]
        for source in sources:
            if not isinstance(source, dict):
                raise YamlError("yaml: map merge requires map or sequence of maps as the value")
            for key, item in source.items():
                self._set(container, key, item, line)


def _check_version(event: Any) -> None:
    if event.version not in (None, (1, 1)):
        raise YamlError("yaml: found incompatible YAML document")


def _as_json(value: Any) -> Any:
    """Convert numbers as JSON would, through which upstream reads YAML."""
    if isinstance(value, float):
        return json_number(value)
    if type(value) is int and value >= 2**63:
        return float(value)
    return value


def _go_literal(value: Any) -> str:
    kind = "[]interface {}" if isinstance(value, list) else "map[interface {}]interface {}"
    return kind + "{...}"


_IMPLICIT = (True, True)
_MAP = events.MappingStartEvent(None, None, True, flow_style=False)
_MAP_END = events.MappingEndEvent()
_LIST = events.SequenceStartEvent(None, None, True, flow_style=False)
_LIST_END = events.SequenceEndEvent()
_OPEN_ENDED = b"\n...\n"


def write_yaml(value: Any) -> bytes:
    """Return the value's text; an iterator in it is written as a list, lazily."""
    sink = BytesIO()
    dumper = _Dumper(sink, allow_unicode=True, encoding="utf-8")
    emit = dumper.emit
    emit(events.StreamStartEvent(encoding="utf-8"))
    emit(events.DocumentStartEvent(explicit=False))
    _emit_value(value, emit)
    emit(events.DocumentEndEvent(explicit=False))
    emit(events.StreamEndEvent())
    text = sink.getvalue()
    # libyaml marks the end of an ambiguous document with ``...``; Go's writer does not.
    return text[: -len(_OPEN_ENDED) + 1] if text.endswith(_OPEN_ENDED) else text


def _emit_value(value: Any, emit: Callable[[Any], None]) -> None:
    """Emit members in order from a stack; a map's keys and values alternate."""
    known: dict[str, Any] = {}
    stack: list[Any] = [iter((value,))]
    ends: list[Any] = [None]
    while stack:
        for item in stack[-1]:
            if isinstance(item, dict):
                emit(_MAP)
                stack.append(_members(item))
                ends.append(_MAP_END)
                break
            if isinstance(item, list | Iterator):
                emit(_LIST)
                stack.append(iter(item))
                ends.append(_LIST_END)
                break
            if isinstance(item, str):
                event = known.get(item)
                if event is None:
                    event = known[item] = _string_event(item)
                emit(event)
            else:
                emit(events.ScalarEvent(None, None, _IMPLICIT, _plain(item)))
        else:
            stack.pop()
            end = ends.pop()
            if end is not None:
                emit(end)


def _members(value: dict[str, Any]) -> Any:
    for key in sort_keys(value):
        yield key
        yield value[key]


def _string_event(text: str) -> Any:
    style = "|" if "\n" in text else '"' if needs_quotes(text) else None
    text = text.encode(errors="replace").decode()  # half a surrogate pair cannot be encoded
    return events.ScalarEvent(None, None, _IMPLICIT, text, style=style)


def _plain(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return go_g(value) if isinstance(value, float) else str(value)
