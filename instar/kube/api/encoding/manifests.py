"""Manifest reader: splits YAML or JSON text into documents and finds line numbers in them.

Called by ``tools/manifest_files.py``, the CLI commands and the reviewer. ``yaml_text.py`` parses
YAML; this module handles document streams, ``List`` kinds and positions. Callers read the files.
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
"""File name suffixes of manifests, when a folder is searched."""

_BOUNDARY = re.compile(r"^(?:---|\.\.\.)(?=\s|$)", re.MULTILINE)
_HEAD = re.compile(r"\A(?:---(?=\s))?\s*")


class UnreadableManifest(Exception):
    """The text is not a valid document; ``str()`` names file, line and cause."""

    def __init__(self, problem: str, file: str, line: int = 0) -> None:
        where = f"{file}:{line}" if line else file
        super().__init__(f"{where}: not readable as YAML: {problem}")
        self.problem, self.file, self.line = problem, file, line


class Chunk(NamedTuple):
    """One document's part of a text; all chunks joined give the text again."""

    text: str
    before: int
    """Number of lines of the file above this part."""


class _Lines:
    """Line lookup for one document; parses its YAML nodes on first use."""

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk

    def __reduce__(self) -> tuple[type[_Lines], tuple[Chunk]]:
        """Pickle the text alone, not the nodes made of it."""
        return _Lines, (self._chunk,)

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
    """JSON pointer of the member inside the document."""
    repeated: tuple[str, ...] = ()
    """A message for each repeated key of the whole document."""

    @property
    def line(self) -> int:
        """Line number in the file; 0 for a value without text."""
        return self.find(())[0]

    def find(self, pointer: Pointer) -> tuple[int, int]:
        """Return the line of a value, or of its nearest existing parent, and that parent's
        depth."""
        if self.lines is None:
            return 0, 0
        line, depth = self.lines.find((*self.inside, *pointer))
        return line, max(depth - len(self.inside), 0)


def documents(text: str, file: str) -> Iterator[Document]:
    """Yield every non-empty document. Raises ``UnreadableManifest`` at the first invalid one."""
    for chunk in chunks(text):
        value, repeated = _read(chunk, file)
        if value is not None:
            yield Document(value, file, _Lines(chunk), repeated=tuple(repeated))


def members(document: Document) -> Iterator[Document]:
    """Yield the members of a ``List``, or the document itself."""
    items = list_items(document.value)
    if items is None:
        yield document
        return
    for position, item in enumerate(items):
        inside = ("items", position)
        repeated = document.repeated if position == 0 else ()
        yield Document(item, document.file, document.lines, inside, repeated)


def list_items(value: Any) -> list[Any] | None:
    """Return the items of a ``List`` of any kind; ``None`` for anything else."""
    if isinstance(value, dict) and str(value.get("kind", "")).endswith("List"):
        items = value.get("items")
        return items if isinstance(items, list) else None
    return None


def only_document(text: str, file: str, *, typed_keys: bool = False) -> Any:
    """Return the value of a text with one document: a configuration, a kubeconfig, a schema."""
    values = [read(chunk, file, typed_keys=typed_keys) for chunk in chunks(text)]
    found = [value for value in values if value is not None]
    if len(found) > 1:
        raise UnreadableManifest(f"it holds {len(found)} documents, one was expected", file)
    return found[0] if found else None


def chunks(text: str) -> Iterator[Chunk]:
    """Split at every ``---`` line; in the first column it is never part of a value."""
    start = before = 0
    for match in _BOUNDARY.finditer(text):
        if match[0] == "---":
            end = match.start()
            if _is_only_directives(text[start:end]):
                continue
        else:
            end = text.find("\n", match.end()) + 1 or len(text)
        yield Chunk(text[start:end], before)
        before += text.count("\n", start, end)
        start = end
    if start < len(text):
        yield Chunk(text[start:], before)


def _is_only_directives(text: str) -> bool:
    """Return whether the text is only directives, which belong to the following document."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return bool(lines) and all(line.startswith("%") for line in lines)


def read(chunk: Chunk, file: str, *, typed_keys: bool = False) -> Any:
    """Return the value of one document, as JSON if it looks like JSON, else as YAML."""
    return _read(chunk, file, typed_keys=typed_keys)[0]


def _read(chunk: Chunk, file: str, *, typed_keys: bool = False) -> tuple[Any, list[str]]:
    """Return the value and a message for each repeated key."""
    encoded = chunk.text.encode(errors="surrogateescape")
    bare = _HEAD.sub("", chunk.text, count=1)
    if bare[:1] in ("{", "["):
        try:
            text = bare.encode(errors="surrogateescape")
            value = decode(text)
            return value, [f'duplicate field "{path}"' for path in duplicate_keys(text, value)]
        except (orjson.JSONDecodeError, TooDeep):
            pass  # a YAML mapping may begin like this, too
    try:
        return read_yaml(encoded, typed_keys=typed_keys, above=chunk.before)
    except (YamlError, TooDeep) as error:
        raise _unreadable(error, chunk, file) from None


def _unreadable(error: Exception, chunk: Chunk, file: str) -> UnreadableManifest:
    """Return the error with the parser's line number; Go's messages count lines differently."""
    found = error.__cause__
    if isinstance(found, yaml.MarkedYAMLError):
        mark = found.problem_mark or found.context_mark
        line = 0 if mark is None else int(mark.line)
        return UnreadableManifest(
            str(found.problem or found.context), file, chunk.before + line + 1
        )
    return UnreadableManifest(str(error), file, chunk.before + 1)


def _step(node: yaml.Node, token: str | int) -> tuple[yaml.Node | None, yaml.Node | None]:
    """Return the key node, if there is one, and the value node below it."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == token:
                return key, value
    if isinstance(node, yaml.SequenceNode) and isinstance(token, int) and token < len(node.value):
        return None, node.value[token]
    return None, None
