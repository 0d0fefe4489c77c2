"""Published CRDs: all of them are structural and compile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from instar.schema.compiled import compile_schema
from instar.schema.defaults_check import default_errors
from instar.schema.parse import structural_errors

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"


def crd_files() -> list[Path]:
    return sorted(path for path in CORPUS.rglob("*") if path.suffix in (".yaml", ".yml"))


def schemas(path: Path) -> Iterator[dict[str, Any]]:
    for document in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader):
        if (document or {}).get("kind") != "CustomResourceDefinition":
            continue
        for version in document["spec"].get("versions") or ():
            schema = (version.get("schema") or {}).get("openAPIV3Schema")
            if schema is not None:
                yield schema


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus of CRDs at {CORPUS}")
def test_every_published_schema_is_structural_and_compiles() -> None:
    seen = 0
    for path in crd_files():
        for schema in schemas(path):
            seen += 1
            assert structural_errors(schema, "schema") == [], path
            assert default_errors(schema, "schema") == [], path
            compile_schema(schema)
    assert seen
