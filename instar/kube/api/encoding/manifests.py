"""Manifests as every tool reads them: a text of YAML or JSON → its documents, with their lines.

``yaml_text.py`` says what YAML means; this module knows streams of documents, ``List``s and where
in a file something stands. Text in, values out: who calls it has opened the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import orjson
import yaml

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Pointer
from instar.kube.api.encoding.go_yaml_scalars import YamlError
from instar.kube.api.encoding.json_text import TooDeep, decode, duplicate_keys
from instar.kube.api.encoding.yaml_text import read_yaml

SUFFIXES = (".yaml", ".yml", ".json")
"""What a file with manifests is called, where a folder is searched for them."""

_BOUNDARY = re.compile(r"^(?:---|\.\.\.)(?=\s|$)", re.MULTILINE)
_HEAD = re.compile(r"\A(?:---(?=\s))?\s*")


class UnreadableManifest(Exception):
    """A text that is no document; ``str()`` says in one line where and why."""

    def __init__(self, problem: str, file: str, line: int = 0) -> None:
        where = f"{file}:{line}" if line else file
        super().__init__(f"{where}: not readable as YAML: {problem}")
        self.problem, self.file, self.line = problem, file, line


class Chunk(NamedTuple):
    """One document's part of a text; all of them joined are the text again."""

    text: str
    before: int
    """Lines of the file above it."""


class _Lines:
    """Where the parts of one document stand. Looked up again only when somebody asks."""

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk

    @cached_property
    def _root(self) -> yaml.Node | None:
        try:
            root: yaml.Node | None = yaml.compose(self._chunk.text, Loader=yaml.CSafeLoader)
            return root
        except (yaml.YAMLError, RecursionError):
            return None  # JSON that YAML cannot read, such as some escapes

    def find(self, pointer: Pointer) -> tuple[int, int]:
        node = self._root
        if node is None:
            return self._chunk.before + 1, 0
        line, depth = node.start_mark.line, 0
        for token in pointer:
            key, node = _step(node, token)
            if node is None:
                break
            line, depth = (key or node).start_mark.line, depth + 1
        return self._chunk.before + int(line) + 1, depth


@dataclass(frozen=True, eq=False)
class Document:
    """One document of a text, or one member of a ``List`` in it."""

    value: Any
    file: str
    lines: _Lines | None = None
    inside: Pointer = ()
    """Where in the document it is."""
    repeated: tuple[str, ...] = ()
    """A text for each key of the whole document that is there twice."""

    @property
    def line(self) -> int:
        """0 for what came from no text."""
        return self.find(())[0]

    def find(self, pointer: Pointer) -> tuple[int, int]:
        """The line of a place, or of the nearest one around it; and how far down that one is."""
        if self.lines is None:
            return 0, 0
        line, depth = self.lines.find((*self.inside, *pointer))
        return line, max(depth - len(self.inside), 0)


def documents(text: str, file: str) -> Iterator[Document]:
    """Every document that is not empty. Raises ``UnreadableManifest`` at the first that is none."""
    for chunk in chunks(text):
        value, repeated = _read(chunk, file)
        if value is not None:
            yield Document(value, file, _Lines(chunk), repeated=tuple(repeated))


def members(document: Document) -> Iterator[Document]:
    """The members of a ``List``, or the document itself."""
    items = listed(document.value)
    if items is None:
        yield document
        return
    for position, item in enumerate(items):
        inside = ("items", position)
        repeated = document.repeated if position == 0 else ()
        yield Document(item, document.file, document.lines, inside, repeated)


def listed(value: Any) -> list[Any] | None:
    """The members of a ``List`` of any kind; ``None`` when it is something else."""
    if isinstance(value, dict) and str(value.get("kind", "")).endswith("List"):
        items = value.get("items")
        return items if isinstance(items, list) else None
    return None


def only_document(text: str, file: str, *, typed_keys: bool = False) -> Any:
    """The value of a text that is one document: a configuration, a kubeconfig, a schema."""
    values = [read(chunk, file, typed_keys=typed_keys) for chunk in chunks(text)]
    found = [value for value in values if value is not None]
    if len(found) > 1:
        raise UnreadableManifest(f"it holds {len(found)} documents, one was expected", file)
    return found[0] if found else None


def chunks(text: str) -> Iterator[Chunk]:
    """Split at every boundary: in the first column it is never part of a value."""
    start = before = 0
    for match in _BOUNDARY.finditer(text):
        if match[0] == "---":
            end = match.start()
            if _announces(text[start:end]):
                continue
        else:
            end = text.find("\n", match.end()) + 1 or len(text)
        yield Chunk(text[start:end], before)
        before += text.count("\n", start, end)
        start = end
    if start < len(text):
        yield Chunk(text[start:], before)


def _announces(text: str) -> bool:
    """Directives belong to the document that begins below them."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return bool(lines) and all(line.startswith("%") for line in lines)


def read(chunk: Chunk, file: str, *, typed_keys: bool = False) -> Any:
    """The value of one document. Kubernetes reads JSON as JSON and all else as YAML."""
    return _read(chunk, file, typed_keys=typed_keys)[0]


def _read(chunk: Chunk, file: str, *, typed_keys: bool = False) -> tuple[Any, list[str]]:
    """The value, and a text for each key that is there twice."""
    encoded = chunk.text.encode(errors="surrogateescape")
    bare = _HEAD.sub("", chunk.text, count=1)
    if bare[:1] in ("{", "["):
        try:
            text = bare.encode(errors="surrogateescape")
            value = decode(text)
            return value, [f'duplicate field "{path}"' for path in duplicate_keys(text, value)]
        except (orjson.JSONDecodeError, TooDeep):
            pass  # a mapping in YAML may begin like this, too
    try:
        return read_yaml(encoded, typed_keys=typed_keys, above=chunk.before)
    except (YamlError, TooDeep) as error:
        raise _unreadable(error, chunk, file) from None


def _unreadable(error: Exception, chunk: Chunk, file: str) -> UnreadableManifest:
    """The parser's own complaint knows the line; what Go says of it counts from elsewhere."""
    found = error.__cause__
    if isinstance(found, yaml.MarkedYAMLError):
        mark = found.problem_mark or found.context_mark
        line = 0 if mark is None else int(mark.line)
        return UnreadableManifest(
            str(found.problem or found.context), file, chunk.before + line + 1
        )
    return UnreadableManifest(str(error), file, chunk.before + 1)


def _step(node: yaml.Node, token: str | int) -> tuple[yaml.Node | None, yaml.Node | None]:
    """The key, if it has one, and the node below."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == token:
                return key, value
    if isinstance(node, yaml.SequenceNode) and isinstance(token, int) and token < len(node.value):
        return None, node.value[token]
    return None, None
