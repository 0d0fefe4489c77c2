"""Converts the text of one file, document by document; unchanged documents keep their text.

``files.py`` calls it.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from ruamel.yaml import YAML

from instar.base.fast_dataclass import dataclass
from instar.kube.api.encoding.manifests import Chunk, UnreadableManifest, chunks, list_items, read
from instar.tools.sdk.errors import ConversionError
from instar.tools.sdk.kept_values import canonical
from instar.tools.sdk.manifests.splice import expand_anchors, splice

Convert = Callable[[dict[str, Any]], dict[str, Any] | None]
"""Return the object at the wanted version, or ``None`` if it is of another kind or already
there.
"""


@dataclass(slots=True)
class Rewritten:
    """The new text. ``problems`` name the line; a document with a problem is left unchanged."""

    text: str
    converted: int = 0
    problems: list[str] = field(default_factory=list)


def rewrite(text: str, convert: Convert) -> Rewritten:
    """Convert YAML of any number of documents, or one JSON document."""
    if text.lstrip().startswith("{"):
        return _rewrite_json(text, convert)
    result = Rewritten("")
    parts = [_rewrite_chunk(chunk, convert, result) for chunk in chunks(text)]
    result.text = "".join(parts)
    return result


def _rewrite_chunk(chunk: Chunk, convert: Convert, result: Rewritten) -> str:
    text, line = chunk.text, chunk.before + 1
    try:
        data = read(chunk, "")
    except UnreadableManifest as error:
        templated = " (a template?)" if "{{" in text else ""
        result.problems.append(f"line {error.line or line}: not plain YAML, left alone{templated}")
        return text
    try:
        converted, count = _converted(data, convert)
        rewritten = _dump(text, data, converted) if count else text
    except ConversionError as error:
        result.problems.append(f"line {line}: {error}")
        return text
    result.converted += count
    return rewritten


def _converted(data: Any, convert: Convert) -> tuple[Any, int]:
    """Return the converted document, and the number of objects in it; a ``List`` has several."""
    if not isinstance(data, dict):
        return data, 0
    items = list_items(data)
    if items is not None:
        pairs = [_converted(item, convert) for item in items]
        return {**data, "items": [item for item, _ in pairs]}, sum(count for _, count in pairs)
    result = convert(data)
    return (data, 0) if result is None else (result, 1)


def editor_for(text: str) -> Any:
    """Return a YAML parser that preserves comments, quotes and indentation. Only for editing;
    ``kube/api/encoding/manifests.py`` defines the meaning of a text.
    """
    editor = YAML()
    editor.preserve_quotes = True
    editor.width = 4096
    editor.indent(**_indentation(text))
    return editor


def _dump(chunk: str, old: Any, new: Any) -> str:
    """Return the text of ``new`` in the author's style: comments, quotes, indentation, line
    ends.
    """
    text = chunk.replace("\r\n", "\n")
    editor = editor_for(text)
    editor.explicit_start = text.startswith("---")
    tree = expand_anchors(editor.load(text))
    if not _same_keys(tree, old):
        raise ConversionError("keys that are no plain text cannot be kept, left alone")
    out = io.StringIO()
    editor.dump(splice(tree, old, new), out)
    written = out.getvalue()
    if not _parses_to(written, new):
        raise ConversionError("it cannot be rewritten without changing its meaning, left alone")
    return written.replace("\n", "\r\n") if "\r\n" in chunk else written


def _parses_to(written: str, wanted: Any) -> bool:
    """Return whether the edited text parses to the wanted data."""
    try:
        return canonical(read(Chunk(written, 0), "")) == canonical(wanted)
    except UnreadableManifest:
        return False


def _same_keys(tree: Any, data: Any) -> bool:
    """Return whether the tree has the keys of the data: Kubernetes reads the keys ``on`` and ``1``
    as "true" and "1", the editor does not.
    """
    if isinstance(data, dict) and isinstance(tree, Mapping):
        return set(tree) == set(data) and all(
            _same_keys(tree[name], item) for name, item in data.items()
        )
    if isinstance(data, list) and isinstance(tree, list):
        return all(map(_same_keys, tree, data))
    return True


def _indentation(chunk: str) -> dict[str, int]:
    """Return the author's indentation, from the first nested field and the first list."""
    nested = re.search(r"^\S[^\n]*:\s*\n( +)[^\s#-]", chunk, re.MULTILINE)
    mapping = len(nested[1]) if nested else 2
    listed = re.search(r"^( *)[^\s#-][^\n]*:[ ]*\n( *)- ", chunk, re.MULTILINE)
    offset = max(len(listed[2]) - len(listed[1]), 0) if listed else 0
    return {"mapping": mapping, "sequence": offset + 2, "offset": offset}


def _rewrite_json(text: str, convert: Convert) -> Rewritten:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        return Rewritten(text, problems=[f"line {error.lineno}: not JSON, left alone"])
    try:
        converted, count = _converted(data, convert)
    except ConversionError as error:
        return Rewritten(text, problems=[f"line 1: {error}"])
    if not count:
        return Rewritten(text)
    indented = re.search(r"\n(\s+)\"", text)
    shape: dict[str, Any] = {"indent": indented[1]} if indented else {"separators": (",", ":")}
    end = "\n" if text.endswith("\n") else ""
    return Rewritten(json.dumps(converted, ensure_ascii=False, **shape) + end, count)
