"""The three shapes of a CRD, and reading JSON as a typed server does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.base.json_values import Object, same_json
from instar.kube.api.crd_codec import CrdDecodeError, decode, from_internal, to_internal
from instar.kube.crds.defaults import with_defaults
from tests.crds.make import internal, problems, with_field, with_schema, written
from tests.support.crds import crd, version

COLUMN = {"name": "A", "type": "string", "jsonPath": ".a"}


def test_single_version_is_hoisted_whole() -> None:
    obj = crd(
        version(
            subresources={"status": {}},
            additionalPrinterColumns=[COLUMN],
            selectableFields=[{"jsonPath": ".a"}],
        )
    )
    spec = internal(obj)["spec"]
    assert spec["version"] == "v1"
    assert spec["versions"] == [{"name": "v1", "served": True, "storage": True}]
    assert spec["validation"] == {"openAPIV3Schema": {"type": "object"}}
    assert spec["subresources"] == {"status": {}}
    assert spec["additionalPrinterColumns"] == [{"name": "A", "type": "string", "JSONPath": ".a"}]
    assert spec["selectableFields"] == [{"jsonPath": ".a"}]
    assert spec["preserveUnknownFields"] is False


def test_each_field_is_hoisted_on_its_own() -> None:
    obj = crd(version("v1", subresources={"status": {}}), version("v2", subresources={}))
    spec = internal(obj)["spec"]
    assert "validation" in spec
    assert "subresources" not in spec
    assert [item["subresources"] for item in spec["versions"]] == [{"status": {}}, {}]


def test_webhook_is_flattened_and_an_empty_one_disappears() -> None:
    client = {"url": "https://h"}
    hook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    spec = internal(crd(conversion={"strategy": "Webhook", "webhook": hook}))["spec"]
    assert spec["conversion"] == {
        "strategy": "Webhook",
        "webhookClientConfig": client,
        "conversionReviewVersions": ["v1"],
    }
    bare = internal(crd(conversion={"strategy": "None", "webhook": {}}))
    assert from_internal(bare, "v1")["spec"]["conversion"] == {"strategy": "None"}


def test_v1beta1_view_keeps_shared_values_at_the_top() -> None:
    view = from_internal(internal(crd(version("v1"), version("v2"))), "v1beta1")
    assert view["apiVersion"] == "apiextensions.k8s.io/v1beta1"
    assert view["spec"]["version"] == "v1"
    assert view["spec"]["validation"] == {"openAPIV3Schema": {"type": "object"}}
    assert view["spec"]["preserveUnknownFields"] is False


def test_versions_of_a_v1_view_share_nothing_with_each_other() -> None:
    first, second = from_internal(internal(crd(version("v1"), version("v2"))), "v1")["spec"][
        "versions"
    ]
    assert first["schema"] == second["schema"]
    assert first["schema"] is not second["schema"]
    assert first["schema"]["openAPIV3Schema"] is not second["schema"]["openAPIV3Schema"]


def test_created_object_prints_the_status_go_prints() -> None:
    assert written(crd())["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)
schemas = st.sampled_from(
    [{"type": "object"}, {"type": "object", "description": "d"}, {"type": "object", "title": "t"}]
)
optional_fields = st.fixed_dictionaries(
    {},
    optional={
        "subresources": st.sampled_from([{}, {"status": {}}]),
        "additionalPrinterColumns": st.sampled_from([[], [COLUMN]]),
        "selectableFields": st.sampled_from([[], [{"jsonPath": ".a"}]]),
        "deprecated": st.booleans(),
        "deprecationWarning": st.text(max_size=3),
    },
)


@st.composite
def crds(draw: st.DrawFn) -> Object:
    count = draw(st.integers(1, 3))
    versions = [
        version(f"v{n}", draw(schemas), **draw(optional_fields)) for n in range(1, count + 1)
    ]
    return crd(*versions, preserveUnknownFields=draw(st.booleans()))


@given(crds())
def test_internal_form_never_changes_what_a_v1_client_sees(obj: Object) -> None:
    before = with_defaults(decode(obj, "v1").obj)
    assert same_json(from_internal(to_internal(before), "v1"), before)


@given(crds())
def test_detour_through_v1beta1_changes_nothing(obj: Object) -> None:
    before = internal(obj)
    assert same_json(internal(from_internal(before, "v1beta1")), before)


@given(json_values, json_values)
def test_same_is_equality_with_types(left: Any, right: Any) -> None:
    assert same_json(left, left)
    assert same_json(left, right) == (repr_of(left) == repr_of(right))


def repr_of(value: Any) -> str:
    """A text that tells types apart and key orders not."""
    if isinstance(value, dict):
        return repr(sorted((name, repr_of(item)) for name, item in value.items()))
    if isinstance(value, list):
        return "L" + repr([repr_of(item) for item in value])
    return repr(0.0) if value == 0 and isinstance(value, float) else repr(value)


def test_unknown_fields_are_dropped_and_named() -> None:
    obj = with_schema(bogus=1, properties={"a": {"type": "string", "odd": 2}})
    obj["spec"]["foo"] = 1
    obj["extra"] = {}
    decoded = decode(obj, "v1")
    root = "spec.versions[0].schema.openAPIV3Schema"
    assert decoded.unknown == [
        f"{root}.bogus",
        f"{root}.properties.a.odd",
        "spec.foo",
        "extra",
    ]
    assert "foo" not in decoded.obj["spec"]


def test_unknown_fields_inside_a_union_are_dropped_in_silence() -> None:
    decoded = decode(with_field(type="array", items={"type": "string", "odd": 1}), "v1")
    assert decoded.unknown == []
    schema = decoded.obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["properties"]["a"]["items"] == {"type": "string"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"versions": "x"},
            "json: cannot unmarshal string into Go struct field "
            "CustomResourceDefinitionSpec.spec.versions of type "
            "[]v1.CustomResourceDefinitionVersion",
        ),
        (
            {"versions": [{"served": "yes"}]},
            "json: cannot unmarshal string into Go struct field "
            "CustomResourceDefinitionVersion.spec.versions.served of type bool",
        ),
        (
            {"scope": 1},
            "json: cannot unmarshal number into Go struct field "
            "CustomResourceDefinitionSpec.spec.scope of type v1.ResourceScope",
        ),
    ],
)
def test_wrong_json_type_is_refused_in_gos_words(spec: Object, expected: str) -> None:
    obj = crd()
    obj["spec"].update(spec)
    with pytest.raises(CrdDecodeError) as caught:
        decode(obj, "v1")
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        (
            {"type": ["string", "null"]},
            "json: cannot unmarshal array into Go struct field JSONSchemaProps"
            ".spec.versions.schema.openAPIV3Schema.properties.type of type string",
        ),
        (
            {"maxLength": 1.5},
            "json: cannot unmarshal number 1.5 into Go struct field JSONSchemaProps"
            ".spec.versions.schema.openAPIV3Schema.properties.maxLength of type int64",
        ),
        ({"additionalProperties": "x"}, "boolean or JSON schema expected"),
    ],
)
def test_wrong_json_type_in_a_schema(keywords: Object, expected: str) -> None:
    with pytest.raises(CrdDecodeError) as caught:
        decode(with_field(**keywords), "v1")
    assert str(caught.value) == expected


def test_zero_values_come_out_as_go_prints_them() -> None:
    field = {
        "type": "string",
        "description": "",
        "nullable": False,
        "default": None,
        "enum": [None, 0],
        "minimum": 0,
        "maximum": 2.0,
        "required": [],
        "x-kubernetes-preserve-unknown-fields": False,
    }
    decoded = decode(with_field(**field), "v1").obj
    schema = decoded["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["properties"]["a"] == {
        "type": "string",
        "enum": [None, 0],
        "minimum": 0,
        "maximum": 2,
        "x-kubernetes-preserve-unknown-fields": False,
    }


def test_empty_body_prints_what_is_always_printed() -> None:
    assert decode({"spec": {"versions": [None]}}, "v1").obj == {
        "metadata": {},
        "spec": {
            "group": "",
            "names": {"plural": "", "kind": ""},
            "scope": "",
            "versions": [{"name": "", "served": False, "storage": False}],
        },
        "status": {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": None,
        },
    }


def test_ca_bundle_is_base64_in_one_line_or_refused() -> None:
    def bundled(text: str) -> Object:
        hook = {"clientConfig": {"caBundle": text}}
        return crd(conversion={"strategy": "Webhook", "webhook": hook})

    decoded = decode(bundled("YW\nJj"), "v1").obj
    assert decoded["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] == "YWJj"
    with pytest.raises(CrdDecodeError, match="illegal base64 data at input byte 2"):
        decode(bundled("YW*j"), "v1")


def test_schema_nested_beyond_reason_is_refused() -> None:
    schema: Object = {"type": "object"}
    for _ in range(5000):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(CrdDecodeError, match="exceeded max depth"):
        decode(crd(version(schema=schema)), "v1")


def test_schema_nested_as_deep_as_decoding_allows_can_be_validated() -> None:
    schema: Object = {"type": "object"}
    for _ in range(100):
        schema = {"type": "object", "properties": {"a": schema}}
    assert problems(crd(version(schema=schema))) == []
