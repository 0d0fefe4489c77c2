"""Converts manifests of many files and writes the changed files back atomically.

``instar convert`` calls it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from instar.base.json_values import Object, copy_json
from instar.kube.schema.offline_requests import create
from instar.kube.schema.pipeline import SchemaPipeline
from instar.tools.sdk.converter import BuiltConverter
from instar.tools.sdk.errors import ConversionError
from instar.tools.sdk.manifests.documents import Convert

GroupKind = tuple[str, str]


def converting(
    converters: Sequence[BuiltConverter],
    version: str,
    pipelines: Mapping[GroupKind, SchemaPipeline] | None = None,
) -> Convert:
    """Return a function that converts objects of these kinds to ``version`` and leaves all others
    unchanged. If the pipeline of that version is given, a server with that schema must accept the
    result unchanged.
    """
    known = {(each.group, each.kind): each for each in converters}

    checks = pipelines or {}

    def convert(obj: dict[str, Any]) -> dict[str, Any] | None:
        group = str(obj.get("apiVersion", "")).rpartition("/")[0]
        kind = (group, str(obj.get("kind", "")))
        converter, target = known.get(kind), f"{group}/{version}"
        if converter is None or obj.get("apiVersion") == target:
            return None
        result = _convert(converter, obj, target)
        if kind in checks:
            _check(checks[kind], result, version)
        return result

    return convert


def _check(pipeline: SchemaPipeline, converted: Object, version: str) -> None:
    dropped = pipeline.after_conversion(copy_json(converted))
    if dropped:
        raise ConversionError(f"{version} does not know {', '.join(dropped)}: a server drops it")
    refusals = create(pipeline, converted).refusals
    if refusals:
        raise ConversionError(f"the result is not valid at {version}: {'; '.join(refusals)}")


def _convert(converter: BuiltConverter, obj: Mapping[str, Any], target: str) -> dict[str, Any]:
    try:
        [result] = converter.convert_all([dict(obj)], target)
    except (orjson.JSONEncodeError, TypeError) as error:
        raise ConversionError(f"not a JSON object: {error}") from None
    return result


def write(path: Path, text: str) -> None:
    """Replace the file atomically."""
    mode = path.stat().st_mode
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
