"""Published CRDs: all of them are structural and compile."""

from __future__ import annotations

from collections.abc import Iterator

from instar.base.json_values import Object
from instar.kube.schema.compiled import compile_schema
from instar.kube.schema.structure.structural_rules import structural_errors
from instar.kube.schema.validation.defaults_check import default_errors
from tests.support.corpus import corpus


def schemas(crd: Object) -> Iterator[Object]:
    for version in crd["spec"].get("versions") or ():
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is not None:
            yield schema


def test_every_published_schema_is_structural_and_compiles() -> None:
    seen = 0
    for path, crd in corpus():
        for schema in schemas(crd):
            seen += 1
            assert structural_errors(schema, "schema") == [], path
            assert default_errors(schema, "schema") == [], path
            compile_schema(schema)
    assert seen
