"""One file's text, document by document; only documents that change are written anew."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from instar.sdk.errors import ConversionError
from instar.sdk.manifests.splice import splice

Convert = Callable[[dict[str, Any]], dict[str, Any] | None]
"""The object at the wanted version, or ``None`` when it is somebody else's or already there."""


class _Loader(yaml.SafeLoader):
    """Dates stay the strings they are in JSON."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


@dataclass(slots=True)
class Rewritten:
    """``problems`` name the line; a document with one is left as it was."""

    text: str
    converted: int = 0
    problems: list[str] = field(default_factory=list)


def read_all(text: str) -> list[Any]:
    """Every document of a YAML or JSON text; raises ``yaml.YAMLError``."""
    return list(yaml.load_all(text, Loader=_Loader))


def rewrite(text: str, convert: Convert) -> Rewritten:
    """YAML of any number of documents, or one JSON document."""
    if text.lstrip().startswith("{"):
        return _rewrite_json(text, convert)
    result = Rewritten("")
    line = 1
    for chunk in _chunks(text):
        result.text += _rewrite_chunk(chunk, convert, line, result)
        line += chunk.count("\n")
    return result


def _chunks(text: str) -> Iterator[str]:
    """Split before every ``---`` line; in the first column it is never part of a value."""
    start = 0
    for match in re.finditer(r"^---(?=\s|$)", text, re.MULTILINE):
        if match.start() > start:
            yield text[start : match.start()]
        start = match.start()
    yield text[start:]


def _rewrite_chunk(chunk: str, convert: Convert, line: int, result: Rewritten) -> str:
    try:
        data = yaml.load(chunk, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = line + (mark.line if mark else 0)
        templated = " (a template?)" if "{{" in chunk else ""
        result.problems.append(f"line {at}: not plain YAML, left alone{templated}")
        return chunk
    try:
        converted, count = _converted(data, convert)
    except ConversionError as error:
        result.problems.append(f"line {line}: {error}")
        return chunk
    if not count:
        return chunk
    result.converted += count
    return _dump(chunk, data, converted)


def _converted(data: Any, convert: Convert) -> tuple[Any, int]:
    """The document converted, and how many objects in it; a ``List`` holds several."""
    if not isinstance(data, dict):
        return data, 0
    if str(data.get("kind", "")).endswith("List") and isinstance(data.get("items"), list):
        pairs = [_converted(item, convert) for item in data["items"]]
        return {**data, "items": [item for item, _ in pairs]}, sum(count for _, count in pairs)
    result = convert(data)
    return (data, 0) if result is None else (result, 1)


def _dump(chunk: str, old: Any, new: Any) -> str:
    from ruamel.yaml import YAML

    editor = YAML()
    editor.preserve_quotes = True
    editor.width = 4096
    editor.explicit_start = chunk.startswith("---")
    editor.indent(**_indentation(chunk))
    tree = editor.load(chunk)
    out = io.StringIO()
    editor.dump(splice(tree, old, new), out)
    return out.getvalue()


def _indentation(chunk: str) -> dict[str, int]:
    """How far this author indents, from the first nested field and the first list."""
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
