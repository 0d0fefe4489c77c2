"""Broken CRDs and the exact words about them, schemas aside."""

from __future__ import annotations

from typing import Any

import pytest

from instar.base.json_values import Object
from tests.crds.make import problems
from tests.support.crds import crd, version

LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
    "'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    r"for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
VERSION_STRUCT = (
    '{"Name":"v1","Served":true,"Storage":%s,"Deprecated":false,"DeprecationWarning":null,'
    '"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}'
)


def names(**fields: Any) -> Object:
    return crd(names={"plural": "foos", "kind": "Foo", **fields})


def webhook(client: Object | None, reviews: list[str] | None = None) -> Object:
    hook: Object = {"conversionReviewVersions": ["v1"] if reviews is None else reviews}
    if client is not None:
        hook["clientConfig"] = client
    return crd(conversion={"strategy": "Webhook", "webhook": hook})


def url(text: str) -> Object:
    return webhook({"url": text})


def service(**fields: Any) -> Object:
    return webhook({"service": {"namespace": "ns", "name": "svc", **fields}})


def column(**fields: Any) -> Object:
    whole = {"name": "A", "type": "string", "jsonPath": ".spec.a", **fields}
    return crd(version(additionalPrinterColumns=[whole]))


def scale(**fields: Any) -> Object:
    paths = {"specReplicasPath": ".spec.r", "statusReplicasPath": ".status.r", **fields}
    return crd(version(subresources={"scale": paths}))


WANTED = "; desired format: https://host[/path]"
CLIENT = "spec.conversion.webhookClientConfig"
NOT_WEBHOOK = "Forbidden: should not be set when strategy is not set to Webhook"
SIMPLE = "must be a simple json path starting with ."

CASES: list[tuple[str, Object, list[str]]] = [
    ("sound", crd(), []),
    (
        "name does not follow the spec",
        {**crd(), "metadata": {"name": "bars.example.com"}},
        [
            'metadata.name: Invalid value: "bars.example.com": '
            'must be spec.names.plural+"."+spec.group'
        ],
    ),
    (
        "group missing",
        {**crd(group=""), "metadata": {"name": "foos."}},
        ["spec.group: Required value"],
    ),
    (
        "group malformed",
        crd(group="A.b"),
        [f'spec.group: Invalid value: "A.b": {SUBDOMAIN}'],
    ),
    (
        "group without dot",
        crd(group="example"),
        ['spec.group: Invalid value: "example": should be a domain with at least one dot'],
    ),
    ("scope missing", crd(scope=""), ["spec.scope: Required value"]),
    (
        "scope unknown",
        crd(scope="Galaxy"),
        ['spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'],
    ),
    (
        "kind missing",
        names(kind=""),
        [
            "spec.names.singular: Required value",
            "spec.names.kind: Required value",
            "spec.names.listKind: Required value",
        ],
    ),
    (
        "kind malformed",
        names(kind="F_o", singular="foo", listKind="Foos"),
        [
            'spec.names.kind: Invalid value: "F_o": '
            f"may have mixed case, but should otherwise match: {LABEL}"
        ],
    ),
    (
        "kind is listKind",
        names(listKind="Foo"),
        ['spec.names.listKind: Invalid value: "Foo": kind and listKind may not be the same'],
    ),
    (
        "short name empty and category malformed",
        names(shortNames=["ok", ""], categories=["A"]),
        [
            f'spec.names.shortNames[1]: Invalid value: "": {LABEL}',
            f'spec.names.categories[0]: Invalid value: "A": {LABEL}',
        ],
    ),
    (
        "first version malformed is told twice",
        crd(version("V1")),
        [
            f'spec.versions[0].name: Invalid value: "V1": {LABEL}',
            f'spec.version: Invalid value: "V1": {LABEL}',
        ],
    ),
    (
        "no versions",
        {**crd(), "spec": {**crd()["spec"], "versions": []}},
        [
            "spec.versions: Invalid value: null: "
            "must have exactly one version marked as storage version",
            "status.storedVersions: Invalid value: null: must have at least one stored version",
        ],
    ),
    (
        "versions twice",
        crd(version(), version()),
        [
            f"spec.versions: Invalid value: [{VERSION_STRUCT % 'true'},{VERSION_STRUCT % 'false'}]"
            ": must contain unique version names"
        ],
    ),
    (
        "two storage versions: only the first is recorded",
        crd(version("v1", storage=True), version("v2", storage=True)),
        [
            f"spec.versions: Invalid value: [{VERSION_STRUCT % 'true'},"
            f"{(VERSION_STRUCT % 'true').replace('v1', 'v2')}]: "
            "must have exactly one version marked as storage version",
            'status.storedVersions: Invalid value: ["v1"]: must have the storage version v2',
        ],
    ),
    (
        "schema missing",
        crd({"name": "v1", "served": True, "storage": True}),
        ["spec.versions[0].schema.openAPIV3Schema: Required value"],
    ),
    (
        "warning on a version that is not deprecated",
        crd(version(deprecationWarning="")),
        [
            'spec.versions[0].deprecationWarning: Invalid value: "": '
            "can only be set for deprecated versions"
        ],
    ),
    (
        "warning empty",
        crd(version(deprecated=True, deprecationWarning="")),
        ['spec.versions[0].deprecationWarning: Invalid value: "": must not be an empty string'],
    ),
    (
        "warning measured in bytes",
        crd(version(deprecated=True, deprecationWarning="é" * 129)),
        [
            f'spec.versions[0].deprecationWarning: Invalid value: "{"é" * 129}": '
            "must be <= 256 characters long"
        ],
    ),
    (
        "warning with a line break",
        crd(version(deprecated=True, deprecationWarning="é\nb")),
        [
            'spec.versions[0].deprecationWarning: Invalid value: "é\\nb": must only contain '
            "printable UTF-8 characters; non-printable character found at index 2"
        ],
    ),
    (
        "preserveUnknownFields",
        crd(preserveUnknownFields=True),
        [
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
            "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        ],
    ),
    ("conversion empty", crd(conversion={}), ["spec.conversion.strategy: Required value"]),
    (
        "conversion unknown",
        crd(conversion={"strategy": "Magic"}),
        [
            'spec.conversion.strategy: Unsupported value: "Magic": '
            'supported values: "None", "Webhook"'
        ],
    ),
    (
        "webhook without a client",
        webhook(None),
        [f"{CLIENT}: Required value: required when strategy is set to Webhook"],
    ),
    (
        "webhook with neither url nor service",
        webhook({}),
        [f"{CLIENT}: Required value: exactly one of url or service is required"],
    ),
    (
        "webhook settings without the strategy",
        crd(
            conversion={
                "strategy": "None",
                "webhook": {"clientConfig": {}, "conversionReviewVersions": ["v1"]},
            }
        ),
        [f"{CLIENT}: {NOT_WEBHOOK}", f"spec.conversion.conversionReviewVersions: {NOT_WEBHOOK}"],
    ),
    (
        "no review versions",
        webhook({"url": "https://h"}, []),
        ["spec.conversion.conversionReviewVersions: Required value"],
    ),
    (
        "review versions twice and unknown",
        webhook({"url": "https://h"}, ["v9", "v9"]),
        [
            'spec.conversion.conversionReviewVersions[1]: Invalid value: "v9": duplicate version',
            'spec.conversion.conversionReviewVersions: Invalid value: ["v9","v9"]: '
            "must include at least one of v1, v1beta1",
        ],
    ),
    (
        "plain http",
        url("http://h/p"),
        [f"{CLIENT}.url: Invalid value: \"http\": 'https' is the only allowed URL scheme{WANTED}"],
    ),
    (
        "no host",
        url("https:///p"),
        [f'{CLIENT}.url: Invalid value: "": host must be specified{WANTED}'],
    ),
    (
        "url with everything",
        url("https://u:p@h/p?q=1#f"),
        [
            f'{CLIENT}.url: Invalid value: "u:p": user information is not permitted in the URL',
            f'{CLIENT}.url: Invalid value: "f": fragments are not permitted in the URL',
            f'{CLIENT}.url: Invalid value: "q=1": query parameters are not permitted in the URL',
        ],
    ),
    (
        "not a url",
        url("https://h:x/"),
        [
            f"{CLIENT}.url: Required value: url must be a valid URL: "
            f'parse "https://h:x/": invalid port ":x" after host{WANTED}'
        ],
    ),
    (
        "service namespace missing is told of the name",
        service(namespace=""),
        [f"{CLIENT}.service.name: Required value"],
    ),
    (
        "service port",
        service(port=70000),
        [
            f"{CLIENT}.service.port: Invalid value: 70000: "
            "port is not valid: must be between 1 and 65535, inclusive"
        ],
    ),
    ("service path fine", service(path="/a/b/"), []),
    (
        "service path of two slashes",
        service(path="//"),
        [f'{CLIENT}.service.path: Invalid value: "//": segment[0] may not be empty'],
    ),
    (
        "service path relative, with a hole",
        service(path="xa//B"),
        [
            f"{CLIENT}.service.path: Invalid value: \"xa//B\": must start with a '/'",
            f'{CLIENT}.service.path: Invalid value: "xa//B": segment[1] may not be empty',
            f'{CLIENT}.service.path: Invalid value: "xa//B": segment[2]: {SUBDOMAIN}',
        ],
    ),
    (
        "column",
        column(name="", type="text", format="hex", jsonPath="spec"),
        [
            "spec.additionalPrinterColumns[0].name: Required value",
            'spec.additionalPrinterColumns[0].type: Invalid value: "text": '
            "must be one of boolean,date,integer,number,string",
            'spec.additionalPrinterColumns[0].format: Invalid value: "hex": '
            "must be one of byte,date,date-time,double,float,int32,int64,password",
            f'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec": {SIMPLE}',
        ],
    ),
    (
        "columns that differ stay with their version",
        crd(
            version("v1"),
            version("v2", additionalPrinterColumns=[{"name": "A", "type": "string"}]),
        ),
        ["spec.versions[1].additionalPrinterColumns[0].JSONPath: Required value"],
    ),
    (
        "scale paths",
        scale(specReplicasPath="spec", statusReplicasPath="", labelSelectorPath=".meta.x"),
        [
            f'spec.subresources.scale.specReplicasPath: Invalid value: "spec": {SIMPLE}',
            "spec.subresources.scale.statusReplicasPath: Required value",
            'spec.subresources.scale.labelSelectorPath: Invalid value: ".meta.x": '
            "should be a json path under either .spec or .status",
        ],
    ),
]


@pytest.mark.parametrize(
    ("obj", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_broken_crd_earns_exactly_these_errors(obj: Object, expected: list[str]) -> None:
    assert problems(obj) == expected


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (
            None,
            "Required value: protected groups must have approval annotation "
            '"api-approved.kubernetes.io", see '
            "https://github.com/kubernetes/enhancements/pull/1111",
        ),
        ("unapproved, an experiment", None),
        ("https://github.com/kubernetes/kubernetes/pull/1", None),
        (
            "yes",
            'Invalid value: "yes": protected groups must have approval annotation '
            '"api-approved.kubernetes.io" with either a URL or a reason starting with '
            '"unapproved", see https://github.com/kubernetes/enhancements/pull/1111',
        ),
    ],
)
def test_protected_group_needs_approval(annotation: str | None, expected: str | None) -> None:
    obj = crd(group="x.k8s.io")
    if annotation is not None:
        obj["metadata"]["annotations"] = {"api-approved.kubernetes.io": annotation}
    path = "metadata.annotations[api-approved.kubernetes.io]"
    assert problems(obj) == ([] if expected is None else [f"{path}: {expected}"])
