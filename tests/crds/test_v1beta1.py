"""CRDs written in ``v1beta1``: top-level or per-version, never both, and older manners."""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Object
from tests.crds.make import created, internal, problems


def beta(**spec: Any) -> Object:
    return {
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {"group": "example.com", "names": {"plural": "foos", "kind": "Foo"}, **spec},
    }


def one(name: str = "v1", **fields: Any) -> Object:
    return {"name": name, "served": True, "storage": name == "v1", **fields}


SCHEMA = {"openAPIV3Schema": {"type": "object"}}
OTHER = {"openAPIV3Schema": {"type": "object", "description": "other"}}
COLUMNS = [{"name": "A", "type": "string", "JSONPath": ".a"}]


def test_defaults_make_a_whole_of_the_shortest_form() -> None:
    spec = internal(beta(version="v1"))["spec"]
    assert spec == {
        "group": "example.com",
        "version": "v1",
        "versions": [{"name": "v1", "served": True, "storage": True}],
        "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
        "scope": "Namespaced",
        "conversion": {"strategy": "None"},
        "preserveUnknownFields": True,
    }


def test_version_is_filled_from_the_first_of_versions() -> None:
    assert internal(beta(versions=[one("v2"), one()]))["spec"]["version"] == "v2"


def test_webhook_defaults_to_the_v1beta1_review_and_https_port() -> None:
    client = {"service": {"namespace": "n", "name": "s"}}
    obj = beta(version="v1", conversion={"strategy": "Webhook", "webhookClientConfig": client})
    conversion = internal(obj)["spec"]["conversion"]
    assert conversion["conversionReviewVersions"] == ["v1beta1"]
    assert conversion["webhookClientConfig"]["service"]["port"] == 443


def test_legacy_crd_without_schema_is_accepted() -> None:
    assert problems(beta(version="v1")) == []


def test_pruning_needs_a_schema_in_every_served_version() -> None:
    assert problems(beta(version="v1", preserveUnknownFields=False)) == [
        "spec.versions[0].schema.openAPIV3Schema: Required value: "
        "because otherwise all fields are pruned"
    ]


def test_defaults_cannot_be_introduced_through_v1beta1() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}
    obj = beta(version="v1", preserveUnknownFields=False, validation={"openAPIV3Schema": schema})
    assert problems(obj) == [
        "spec.validation.openAPIV3Schema.properties[a].default: Forbidden: must not be set"
    ]


def test_webhook_needs_pruning() -> None:
    client = {"url": "https://h"}
    obj = beta(version="v1", conversion={"strategy": "Webhook", "webhookClientConfig": client})
    assert problems(obj) == [
        'spec.conversion.strategy: Invalid value: "Webhook": '
        "must be None if spec.preserveUnknownFields is true"
    ]


def test_version_must_name_the_first_of_versions() -> None:
    assert problems(beta(version="v9", versions=[one()])) == [
        'spec.version: Invalid value: "v9": must match the first version in spec.versions'
    ]


def test_top_level_and_per_version_values_exclude_each_other() -> None:
    obj = beta(
        validation=SCHEMA,
        subresources={"status": {}},
        additionalPrinterColumns=COLUMNS,
        versions=[
            one(schema=OTHER, subresources={}, additionalPrinterColumns=COLUMNS),
            one("v2"),
        ],
    )
    assert problems(obj) == [
        f"spec.{field}: Forbidden: top-level and per-version {what} are mutually exclusive"
        for field, what in (
            ("validation", "schemas"),
            ("subresources", "subresources"),
            ("additionalPrinterColumns", "additionalPrinterColumns"),
        )
    ]


def test_per_version_values_may_not_all_be_the_same() -> None:
    fields: Object = {"schema": SCHEMA, "subresources": {}, "additionalPrinterColumns": COLUMNS}
    found = problems(beta(versions=[one(**fields), one("v2", **fields)]))
    assert [text.rpartition("]: ")[2] for text in found] == [
        f"per-version {what} may not all be set to identical values "
        f"(top-level {instead} should be used instead)"
        for what, instead in (
            ("schemas", "validation"),
            ("subresources", "subresources"),
            ("additionalPrinterColumns", "additionalPrinterColumns"),
        )
    ]
    assert all(text.startswith('spec.versions: Invalid value: [{"Name":"v1"') for text in found)


def test_per_version_values_that_differ_are_fine() -> None:
    obj = beta(versions=[one(schema=SCHEMA), one("v2", schema=OTHER)])
    assert problems(obj) == []
    assert created(obj)["status"]["storedVersions"] == ["v1"]
