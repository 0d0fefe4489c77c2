"""Forty single changes, each found under its name; twenty harmless ones without an error."""

from __future__ import annotations

from copy import deepcopy

import pytest

from instar.base.json_values import Object
from instar.review import Report, Severity, review
from tests.reviewer.widget import (
    Change,
    add,
    changed,
    drop,
    each_version,
    fields,
    names,
    put,
    rename,
    spec,
    version,
    widget,
)

RULE = {"rule": "!has(self.high) || self.high < 10", "message": "high must be small"}
KEPT = {"rule": "!has(self.low) || self.low >= 0", "message": "low must not be negative"}
HOOK = {
    "strategy": "Webhook",
    "webhook": {
        "clientConfig": {"url": "https://hooks.example.com/convert"},
        "conversionReviewVersions": ["v1"],
    },
}
SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.ready"}


def _drop_version(crd: Object) -> None:
    del crd["spec"]["versions"][1]


def _flip_storage(crd: Object) -> None:
    first, second = crd["spec"]["versions"]
    first["storage"], second["storage"] = False, True


def _require(crd: Object) -> None:
    for node in fields(crd, "spec"):
        node["required"].append("size")


def _move(crd: Object) -> None:
    for node in fields(crd, "spec"):
        moved = node["properties"].pop("range")
        node["properties"]["limits"] = {"type": "object", "properties": {"range": moved}}


def _lose(crd: Object) -> None:
    del crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][
        "share"
    ]


PLANTED: dict[str, tuple[Change, str]] = {
    "field removed": (drop("spec", "note"), "field-removed"),
    "field renamed": (rename(("spec", "replicas"), "replicaCount"), "field-renamed"),
    "field moved": (_move, "field-moved"),
    "string to integer": (put("spec", "image", type="integer"), "type-changed"),
    "number to integer": (put("spec", "share", type="integer"), "type-changed"),
    "integer to number": (put("status", "ready", type="number"), "type-widened"),
    "int32 to int64": (put("spec", "replicas", format="int64"), "format-loosened"),
    "format demanded": (put("spec", "name", format="ipv4"), "format-tightened"),
    "new required field": (_require, "required-added"),
    "no longer required": (put("spec", required=None), "required-removed"),
    "enum on free text": (put("spec", "image", enum=["a", "b"]), "enum-added"),
    "enum value gone": (put("spec", "size", enum=["small"]), "enum-value-removed"),
    "enum value new": (
        put("spec", "size", enum=["small", "large", "huge"]),
        "enum-value-added",
    ),
    "minimum raised": (put("spec", "replicas", minimum=1), "minimum-tightened"),
    "maximum lowered": (put("spec", "replicas", maximum=50), "maximum-tightened"),
    "maximum made exclusive": (
        put("spec", "replicas", exclusiveMaximum=True),
        "maximum-tightened",
    ),
    "minLength raised": (put("spec", "image", minLength=3), "min-length-tightened"),
    "maxLength lowered": (put("spec", "image", maxLength=63), "max-length-tightened"),
    "minItems new": (put("spec", "tags", minItems=1), "min-items-tightened"),
    "maxItems lowered": (put("spec", "tags", maxItems=2), "max-items-tightened"),
    "maxProperties lowered": (put("spec", "labels", maxProperties=2), "max-properties-tightened"),
    "pattern changed": (put("spec", "name", pattern="^[a-z]*$"), "pattern-changed"),
    "pattern new": (put("spec", "image", pattern="^[a-z/]+$"), "pattern-added"),
    "null forbidden": (put("spec", "note", nullable=None), "nullable-removed"),
    "multipleOf new": (put("spec", "share", multipleOf=0.25), "multiple-of-tightened"),
    "anyOf branch gone": (put("spec", "source", anyOf=[{"required": ["git"]}]), "any-of-tightened"),
    "oneOf new": (
        put("spec", "range", oneOf=[{"required": ["low"]}, {"required": ["high"]}]),
        "one-of-tightened",
    ),
    "default changed": (put("spec", "replicas", default=2), "default-changed"),
    "default removed": (put("spec", "replicas", default=None), "default-removed"),
    "default added": (put("spec", "size", default="small"), "default-added"),
    "list became a set": (put("spec", "tags", x_kubernetes_list_type="set"), "list-type-changed"),
    "list keys changed": (
        put("spec", "ports", x_kubernetes_list_map_keys=["name"]),
        "list-map-keys-changed",
    ),
    "map became atomic": (
        put("spec", "labels", x_kubernetes_map_type="atomic"),
        "map-type-changed",
    ),
    "free content closed": (
        put("spec", "extra", x_kubernetes_preserve_unknown_fields=None),
        "preserve-unknown-removed",
    ),
    "CEL rule new": (put("spec", "range", x_kubernetes_validations=[KEPT, RULE]), "rule-added"),
    "transition rule new": (
        put(
            "spec",
            "image",
            x_kubernetes_validations=[{"rule": "self == oldSelf", "message": "immutable"}],
        ),
        "rule-added",
    ),
    "version removed": (_drop_version, "version-removed"),
    "version no longer served": (version(1, served=False), "version-unserved"),
    "storage flipped": (_flip_storage, "storage-version-changed"),
    "scope changed": (spec(scope="Cluster"), "scope-changed"),
    "short name gone": (names(shortNames=[]), "short-name-removed"),
    "status subresource gone": (
        each_version(subresources={"scale": SCALE}),
        "subresource-status-removed",
    ),
    "scale subresource gone": (
        each_version(subresources={"status": {}}),
        "subresource-scale-removed",
    ),
    "selectable field gone": (each_version(selectableFields=None), "selectable-field-removed"),
    "webhook for equal versions": (spec(conversion=HOOK), "conversion-webhook-unneeded"),
    "field known to one version only": (_lose, "conversion-none-loses"),
}

_COMPANIONS = {
    # A change that is two facts: the second is as true as the first.
    "scale subresource gone": {"subresource-scale-removed"},
    "status subresource gone": {"status-without-subresource"},
    "webhook for equal versions": {"conversion-strategy-changed"},
    # With schemas that differ, the server looks for a shared one beside shared selectable fields.
    "field known to one version only": {"field-removed", "crd-refused"},
}


def _loud(report: Report) -> set[str]:
    return {item.rule for item in report.findings if item.severity is not Severity.INFO}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_change_is_found_and_named(name: str) -> None:
    change, rule = PLANTED[name]

    report = review(widget(), changed(change))

    assert not report.problems
    found = {item.rule for item in report.findings}
    assert rule in found
    assert _loud(report) - _COMPANIONS.get(name, set()) <= {rule}


def test_planted_set_is_large_enough() -> None:
    assert len(PLANTED) >= 40


def _reorder(crd: Object) -> None:
    crd["spec"]["versions"].reverse()
    for node in fields(crd, "spec"):
        node["properties"] = dict(reversed(node["properties"].items()))


def _describe(crd: Object) -> None:
    for node in fields(crd, "spec"):
        for child in node["properties"].values():
            child["description"] = "Said better."


def _add_version(crd: Object) -> None:
    new = deepcopy(crd["spec"]["versions"][0])
    crd["spec"]["versions"].append({**new, "name": "v2", "storage": False})


def _require_with_default(crd: Object) -> None:
    for node in fields(crd, "spec"):
        node["required"].append("replicas")


HARMLESS: dict[str, Change] = {
    "nothing": lambda _: None,
    "descriptions": _describe,
    "order of versions and fields": _reorder,
    "order of enum values": put("spec", "size", enum=["large", "small"]),
    "new optional field": add(("spec", "colour"), {"type": "string"}),
    "new optional field with a default": add(
        ("spec", "mode"), {"type": "string", "default": "fast"}
    ),
    "new optional object with required members": add(
        ("spec", "probe"),
        {"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}},
    ),
    "new field with rules of its own": add(
        ("spec", "cpu"),
        {
            "type": "integer",
            "minimum": 1,
            "x-kubernetes-validations": [{"rule": "self < 9"}],
        },
    ),
    "maximum raised": put("spec", "replicas", maximum=1000),
    "minLength dropped": put("spec", "image", minLength=None),
    "pattern dropped": put("spec", "name", pattern=None),
    "anyOf branch more": put(
        "spec", "source", anyOf=[{"required": [name]} for name in ("git", "oci", "none")]
    ),
    "rule dropped": put("spec", "range", x_kubernetes_validations=None),
    "message of a rule": put(
        "spec", "range", x_kubernetes_validations=[{**KEPT, "message": "low is negative"}]
    ),
    "atomic written out": put("spec", "tags", x_kubernetes_list_type="atomic"),
    "required but defaulted": _require_with_default,
    "unenforced format": put("spec", "image", format="image-reference"),
    "int-or-string spelled out": put(
        "spec", "port", anyOf=[{"type": "integer"}, {"type": "string"}]
    ),
    "version added": _add_version,
    "version deprecated": version(1, deprecated=True, deprecationWarning="use v1"),
    "columns, short names and categories": names(shortNames=["wd", "wdg"], categories=["all", "x"]),
    "new printer column": each_version(additionalPrinterColumns=None),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_change_gives_no_error(name: str) -> None:
    report = review(widget(), changed(HARMLESS[name]))

    assert not report.problems
    assert [item for item in report.findings if item.severity is Severity.ERROR] == []


def test_harmless_set_is_large_enough() -> None:
    assert len(HARMLESS) >= 20
