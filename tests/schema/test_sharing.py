"""Equal parts of schemas are one part; who holds them makes no difference to what they say."""

from __future__ import annotations

import gc
from typing import Any

from instar.kube.schema.compiled import compile_schema
from instar.kube.schema.structure import interning
from instar.kube.schema.structure.interning import intern_node
from instar.kube.schema.structure.parse import structural

_TEMPLATE: dict[str, Any] = {
    "type": "object",
    "description": "where to",
    "required": ["host"],
    "properties": {
        "host": {"type": "string", "maxLength": 5, "description": "a name"},
        "port": {"type": "integer", "default": 80},
    },
}


def _schema(note: str, **spec: Any) -> dict[str, Any]:
    template = {**_TEMPLATE, "description": note}
    return {"type": "object", "properties": {"spec": {**template, **spec}}}


def test_parts_that_differ_in_prose_alone_are_the_same_part() -> None:
    one, other = intern_node(structural(_schema("one"))), intern_node(structural(_schema("other")))

    assert one is other


def test_nodes_that_differ_in_a_keyword_share_their_children() -> None:
    one, other = (
        intern_node(structural(_schema(""))),
        intern_node(structural(_schema("", minProperties=2))),
    )

    assert one is not other
    assert one.properties["spec"].properties["host"] is other.properties["spec"].properties["host"]


def test_the_order_of_properties_is_part_of_a_schema() -> None:
    swapped = dict(reversed(_TEMPLATE["properties"].items()))

    one, other = (
        intern_node(structural(_TEMPLATE)),
        intern_node(structural({**_TEMPLATE, "properties": swapped})),
    )

    assert [*one.properties] != [*other.properties]


def test_a_shared_schema_judges_prunes_and_defaults_as_its_own() -> None:
    compile_schema(_schema("first"))
    second = compile_schema(_schema("second"))
    obj = {"spec": {"host": "too long", "more": 1}}

    second.prune(obj)
    second.default(obj)
    found = second.validate(obj)

    assert obj == {"spec": {"host": "too long", "port": 80}}
    assert [error.field for error in found] == ["spec.host"]


def test_a_rule_finds_the_field_it_names() -> None:
    rule = {"rule": "false", "fieldPath": ".host"}
    node = intern_node(structural({**_TEMPLATE, "x-kubernetes-validations": [rule]}))

    assert "host" in node.raw["properties"]


def test_integers_of_any_size_may_stand_in_a_schema() -> None:
    node = intern_node(structural({"type": "integer", "enum": [10**30]}))

    assert node.raw["enum"] == [10**30]


def test_an_unreferenced_schema_is_freed() -> None:
    gc.collect()
    before = len(interning._known)
    kept = compile_schema(_schema("", title="x", pattern="only here"))
    kept.validate({"spec": {}})
    assert len(interning._known) > before

    del kept
    gc.collect()

    assert len(interning._known) == before
