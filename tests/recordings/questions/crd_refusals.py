"""CRDs that are created with ``dryRun=All``: names, versions, columns, subresources, conversion.

Most are refused; what is accepted is answered with its defaults.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from instar.base.json_values import Object
from tests.recordings.scenarios import CRDS, Scenario, a_version, with_spec

_DRY = f"{CRDS}?dryRun=All"
_ABSENT = object()
_PLAIN = with_spec(a={"type": "string"}, n={"type": "integer"})
_LONG = "a" * 64
_WEBHOOK = {
    "strategy": "Webhook",
    "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://hook.example/convert"},
    },
}


def changed(document: Object, *changes: tuple[str, Any]) -> Object:
    """A copy with the values at the dotted paths; ``_ABSENT`` removes one."""
    out = copy.deepcopy(document)
    for path, value in changes:
        *way, last = [int(part) if part.isdigit() else part for part in path.split("/")]
        at: Any = out
        for part in way:
            at = at[part]
        if value is _ABSENT:
            del at[last]
        else:
            at[last] = value
    return out


_NAMES: list[Any] = [
    "", "Foos", "foo_s", "foo.s", "-foos", "foos-", "1foos", "foos1", _LONG, "f", "foo s", "FOOS",
    "é", "foos/status", None, 5, True, [], {},
]  # fmt: skip
_KINDS: list[Any] = [
    "",
    "foo",
    "Foo-Bar",
    "Foo.Bar",
    "1Foo",
    "FOO",
    _LONG,
    "Föö",
    "FooList",
    None,
    7,
]
_GROUPS: list[Any] = [
    "", "example", "Example.com", "a_b.example", ".example.com", "example.com.", "a..b", _LONG,
    "k8s.io", "apps", "x.kubernetes.io", "x.k8s.io", "1.example", "-a.example", None, 3,
]  # fmt: skip
_VERSIONS: list[Any] = [
    "", "V1", "v1_", "1", "v1alpha", "v1.0", "-v1", "v1-", _LONG, "v 1", None, 1, "latest", "v10beta2",
]  # fmt: skip
_SCOPES: list[Any] = ["", "namespaced", "Cluster", "Everywhere", None, 1]


def _names() -> Iterator[Scenario]:
    scenario = Scenario("crd-names")
    base = scenario.crd(_PLAIN)

    def send(*changes: tuple[str, Any]) -> None:
        scenario.post(_DRY, changed(base, *changes))

    for name in _NAMES:
        send(("spec/names/plural", name))
        if isinstance(name, str):
            send(("spec/names/plural", name), ("metadata/name", f"{name}.{scenario.group}"))
    for name in _NAMES:
        send(("spec/names/singular", name))
        send(("spec/names/shortNames", [name]))
        send(("spec/names/categories", [name]))
        send(("metadata/name", name))
    for kind in _KINDS:
        send(("spec/names/kind", kind))
        send(("spec/names/listKind", kind))
        send(("spec/names/kind", kind), ("spec/names/listKind", kind))
    for group in _GROUPS:
        send(("spec/group", group))
        if isinstance(group, str):
            send(("spec/group", group), ("metadata/name", f"foos.{group}"))
    for version in _VERSIONS:
        send(("spec/versions/0/name", version))
    for scope in _SCOPES:
        send(("spec/scope", scope))
    for lists in (["a", "a"], ["a", "b", "a"], [], None, "a", ["all"]):
        send(("spec/names/shortNames", lists))
        send(("spec/names/categories", lists))
    for missing in ("spec/names", "spec/group", "spec/scope", "spec/versions", "spec", "metadata",
                    "spec/names/kind", "spec/names/plural", "metadata/name"):  # fmt: skip
        send((missing, _ABSENT))
    yield scenario


def _versions() -> Iterator[Scenario]:
    scenario = Scenario("crd-versions")
    group = f"foos.{scenario.group}"

    def send(*versions: Object, **spec: Any) -> None:
        scenario.post(_DRY, scenario.crd(list(versions), **spec))

    for first in (True, False):
        for second in (True, False):
            for served in (True, False):
                send(a_version("v1", _PLAIN, storage=first),
                     a_version("v2", _PLAIN, storage=second, served=served))  # fmt: skip
    send()
    send(a_version("v1", _PLAIN), a_version("v1", _PLAIN, storage=False))
    for text in ("", "old", "a" * 300, "two\nlines", None, 5):
        send(a_version("v1", _PLAIN, deprecated=True, deprecationWarning=text))
        send(a_version("v1", _PLAIN, deprecationWarning=text))
    for part in ("name", "served", "storage", "schema"):
        version = a_version("v1", _PLAIN)
        del version[part]
        send(version)
    schema: Any
    for schema in (None, {}, {"openAPIV3Schema": None}, {"openAPIV3Schema": {}}, 5, "x",
                   {"openAPIV3Schema": {"type": "string"}}, {"openAPIV3Schema": {"type": "array"}},
                   {"openAPIV3Schema": {"type": "object", "properties": {"metadata": {"type": "string"}}}},
                   {"other": 1}):  # fmt: skip
        send({"name": "v1", "served": True, "storage": True, "schema": schema})
    for preserve in (True, False, None, "x"):
        send(a_version("v1", _PLAIN), preserveUnknownFields=preserve)
        send({"name": "v1", "served": True, "storage": True}, preserveUnknownFields=preserve)
    send(a_version("v2", _PLAIN, storage=False), a_version("v1", _PLAIN),
         a_version("v10", _PLAIN, storage=False), a_version("v1beta1", _PLAIN, storage=False),
         a_version("foo", _PLAIN, storage=False))  # fmt: skip
    for name in ("v1", "v9", ""):
        document = scenario.crd(_PLAIN)
        document["spec"]["version"] = name
        scenario.post(_DRY, document)
        scenario.post(f"{_DRY}&fieldValidation=Strict", document)
    status: Any
    for status in (
        {},
        {"storedVersions": ["v9"]},
        {"conditions": []},
        {"acceptedNames": {"kind": "X"}},
        5,
    ):
        scenario.post(_DRY, {**scenario.crd(_PLAIN), "status": status})
    scenario.get(f"{CRDS}/{group}")
    yield scenario


_COLUMNS: list[Any] = [
    {"name": "A", "type": "string", "jsonPath": ".spec.a"},
    {"name": "", "type": "string", "jsonPath": ".spec.a"},
    {"name": "A", "type": "", "jsonPath": ".spec.a"},
    {"name": "A", "type": "text", "jsonPath": ".spec.a"},
    {"name": "A", "type": "string", "jsonPath": ""},
    {"name": "A", "type": "string", "jsonPath": "spec.a"},
    {"name": "A", "type": "string", "jsonPath": "{.spec.a}"},
    {"name": "A", "type": "string", "jsonPath": ".spec[0"},
    {"name": "A", "type": "string", "jsonPath": ".spec['a']"},
    {"name": "A", "type": "string", "jsonPath": ".spec.items[*].a"},
    {"name": "A", "type": "string", "jsonPath": ".spec..a"},
    {"name": "A", "type": "string", "jsonPath": ".spec[?(@.a=='b')].c"},
    {"name": "A", "type": "integer", "format": "int32", "jsonPath": ".spec.n", "priority": 1},
    {"name": "A", "type": "integer", "format": "int16", "jsonPath": ".spec.n"},
    {"name": "A", "type": "integer", "format": "", "jsonPath": ".spec.n"},
    {"name": "A", "type": "integer", "priority": -1, "jsonPath": ".spec.n"},
    {"name": "A", "type": "integer", "priority": "x", "jsonPath": ".spec.n"},
    {"name": "A", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {"name": "A", "type": "boolean", "jsonPath": ".spec.b", "description": "whether"},
    {"name": "A", "type": "number", "format": "double", "jsonPath": ".spec.n"},
    {"type": "string", "jsonPath": ".spec.a"}, {"name": "A", "jsonPath": ".spec.a"},
    {"name": "A", "type": "string"}, {}, None, "x",
]  # fmt: skip
_SUBRESOURCES: list[Any] = [
    {}, {"status": {}}, {"status": None}, {"status": "x"}, {"other": {}}, None, [],
    {"scale": {}}, {"scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
    {"scale": {"specReplicasPath": ".spec.n"}}, {"scale": {"statusReplicasPath": ".status.n"}},
    {"scale": {"specReplicasPath": "", "statusReplicasPath": ""}},
    {"scale": {"specReplicasPath": "spec.n", "statusReplicasPath": "status.n"}},
    {"scale": {"specReplicasPath": ".status.n", "statusReplicasPath": ".spec.n"}},
    {"scale": {"specReplicasPath": ".spec.n[0]", "statusReplicasPath": ".status.n[*]"}},
    {"scale": {"specReplicasPath": ".spec", "statusReplicasPath": ".status"}},
    {"scale": {"specReplicasPath": ".spec.a.b.c", "statusReplicasPath": ".status.a"}},
    {"scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n",
               "labelSelectorPath": ".status.s"}},
    {"scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n",
               "labelSelectorPath": ".spec.s"}},
    {"scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n",
               "labelSelectorPath": ".metadata.s"}},
    {"scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n",
               "labelSelectorPath": "status.s"}},
    {"scale": {"specReplicasPath": ".spec.n..m", "statusReplicasPath": ".status.n."}},
]  # fmt: skip
_SELECTABLE: list[Any] = [
    [{"jsonPath": ".spec.a"}], [{"jsonPath": ".spec.n"}], [{"jsonPath": ".spec.none"}],
    [{"jsonPath": "spec.a"}], [{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.a"}], [{}], [None],
    [{"jsonPath": ".metadata.name"}], [{"jsonPath": ".spec"}], [{"jsonPath": ".spec.a.b"}],
    [{"jsonPath": ".spec.list[0]"}], [{"jsonPath": ".spec['a']"}], [{"jsonPath": ""}], [],
    [{"jsonPath": f".spec.f{number}"} for number in range(9)],
]  # fmt: skip


def _parts() -> Iterator[Scenario]:
    scenario = Scenario("crd-parts")

    def send(**fields: Any) -> None:
        scenario.post(_DRY, scenario.crd([a_version("v1", _PLAIN, **fields)]))

    for column in _COLUMNS:
        send(additionalPrinterColumns=[column])
    send(additionalPrinterColumns=[_COLUMNS[0], _COLUMNS[0]])
    send(additionalPrinterColumns=None)
    send(additionalPrinterColumns={})
    for subresources in _SUBRESOURCES:
        send(subresources=subresources)
    for selectable in _SELECTABLE:
        send(selectableFields=selectable)
    many = {f"f{number}": {"type": "string"} for number in range(9)}
    for kind in ("string", "integer", "boolean", "number", "array", "object"):
        schema: Object = {"type": kind}
        if kind == "array":
            schema["items"] = {"type": "string"}
        typed = with_spec(a=schema, **many)
        listed = [{"jsonPath": ".spec.a"}]
        scenario.post(_DRY, scenario.crd([a_version("v1", typed, selectableFields=listed)]))
    scenario.post(
        _DRY, scenario.crd([a_version("v1", with_spec(**many), selectableFields=_SELECTABLE[-1])])
    )
    yield scenario


_CLIENTS: list[Any] = [
    {"url": "https://hook.example/convert"}, {"url": "http://hook.example"}, {"url": ""}, {},
    {"url": "https://user@hook.example"}, {"url": "https://hook.example?a=b"},
    {"url": "https://hook.example#f"}, {"url": "hook.example"}, {"url": "https://"}, None,
    {"url": "https://hook.example", "service": {"namespace": "a", "name": "b"}},
    {"service": {"namespace": "a", "name": "b"}}, {"service": {"namespace": "a"}},
    {"service": {"name": "b"}}, {"service": {"namespace": "a", "name": "b", "port": 0}},
    {"service": {"namespace": "a", "name": "b", "port": 70000}},
    {"service": {"namespace": "a", "name": "b", "path": "x"}},
    {"service": {"namespace": "a", "name": "b", "path": "/a//b"}},
    {"service": {"namespace": "a", "name": "b", "path": "/a b"}},
    {"service": {"namespace": "a", "name": "b", "path": "/a/b/", "port": 8443}},
    {"url": "https://hook.example", "caBundle": "bm90IGEgY2VydA=="},
    {"url": "https://hook.example", "caBundle": ""}, {"url": "https://hook.example", "caBundle": "%"},
]  # fmt: skip


def _conversions() -> Iterator[Scenario]:
    scenario = Scenario("crd-conversions")

    def send(conversion: Any) -> None:
        scenario.post(_DRY, scenario.crd(_PLAIN, conversion=conversion))

    for conversion in (None, {}, {"strategy": "None"}, {"strategy": ""}, {"strategy": "Other"},
                       {"strategy": "Webhook"}, {"strategy": "Webhook", "webhook": {}},
                       {"strategy": "None", "webhook": _WEBHOOK["webhook"]}, 5, "None"):  # fmt: skip
        send(conversion)
    for client in _CLIENTS:
        send(changed(_WEBHOOK, ("webhook/clientConfig", client)))
    for versions in ([], None, ["v1"], ["v1beta1"], ["v2"], ["v1", "v1"], ["v2", "v1beta1"], [""],
                     ["V1"], ["v1", "bad version"]):  # fmt: skip
        send(changed(_WEBHOOK, ("webhook/conversionReviewVersions", versions)))
    yield scenario


def _metadata() -> Iterator[Scenario]:
    scenario = Scenario("crd-metadata")

    def send(**metadata: Any) -> None:
        document = scenario.crd(_PLAIN)
        document["metadata"].update(metadata)
        scenario.post(_DRY, document)

    for approval in ("https://github.com/x/y", "unapproved, for now", "maybe", "", "http://x"):
        document = scenario.crd(_PLAIN)
        group = "things.k8s.io"
        document["spec"]["group"] = group
        document["metadata"] = {
            "name": f"foos.{group}", "annotations": {"api-approved.kubernetes.io": approval},
        }  # fmt: skip
        scenario.post(_DRY, document)
        document = changed(document, ("spec/group", "x.kubernetes.io"))
        document["metadata"]["name"] = "foos.x.kubernetes.io"
        scenario.post(_DRY, document)
    send(namespace="default")
    send(labels={"a b": "c"}, annotations={"-": "x"})
    send(labels={"a": "é"})
    send(finalizers=["x"])
    send(finalizers=["example.com/x", "foregroundDeletion", "orphan"])
    send(finalizers=["foregroundDeletion"], ownerReferences=[{"apiVersion": "v1", "kind": "Node"}])
    send(generateName="foos-")
    send(uid="x", resourceVersion="5", generation=7, creationTimestamp="2020-01-01T00:00:00Z")
    send(deletionTimestamp="2020-01-01T00:00:00Z", deletionGracePeriodSeconds=5)
    for strictness in ("Strict", "Warn", "Ignore"):
        body = {**scenario.crd(_PLAIN), "extra": 1}
        body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["unknownKeyword"] = 1
        scenario.post(f"{_DRY}&fieldValidation={strictness}", body)
    scenario.post(f"{_DRY}&fieldValidation=Loose", scenario.crd(_PLAIN))
    yield scenario


def scenarios() -> Iterator[Scenario]:
    for maker in (_names, _versions, _parts, _conversions, _metadata):
        yield from maker()
