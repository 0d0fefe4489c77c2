"""What requests are made of: real CRDs and objects, and texts of every little language.

The corpus and the recorded facts beside the checkout are used where they are; without them the
examples of this repository and the objects below remain.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from instar.base.json_values import Object
from instar.kube.api.encoding.manifests import documents
from instar.kube.protobuf.envelope import encode_object
from instar.kube.protobuf.errors import ProtobufError, UnknownKind
from tests.support import crds
from tests.support.builtins import BUILTINS
from tests.support.corpus import CORPUS
from tests.support.minimal import generous, minimal
from tests.support.shared import SHARED

ORACLE = SHARED / "oracle"
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
GROUP = "fuzz.example.com"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SMALL = 60_000
"""Bytes of a CRD; larger ones would be most of the work and none of the finds."""

CEL = (
    "self.replicas <= self.limit", "has(self.name) && self.name.matches('^[a-z]+$')",
    "self.items.all(x, x.key != '' && size(x.value) < 10)", "oldSelf.name == self.name",
    "self.items.map(x, x.key).isSorted()", "quantity(self.size).isGreaterThan(quantity('1Ki'))",
    "duration(self.wait) < duration('1h')", "self.tags.exists_one(t, t.startsWith('a'))",
    "self.items.filter(x, x.key == 'a').size() + 1 < 5 ? true : false",
    "ip(self.name).family() == 4",
    "self.?name.orValue('x') == 'x'", "int(self.name) > 0", "self.map.all(k, self.map[k] == k)",
    "semver(self.name).major() > 1", "sets.contains(self.tags, ['a'])", "string(self.limit) == '1'",
    "cidr(self.name).containsIP('10.0.0.1')", "url(self.name).getHost() != ''", "type(self) == map",
    "'%s %d'.format([self.name, self.limit]) == ''",
    "timestamp('2024-01-01T00:00:00Z').getHours()==0",
    "!format.dns1123Label().validate(self.name).hasValue()", "b'a' + b'b' == b'ab'", "1 / 0 == 1",
    "dyn(self).spec.x.y", "cel.bind(a, self.name, a + a + a) == ''", "isQuantity(self.size)",
)  # fmt: skip
JSONPATHS = (
    ".spec.name", ".spec.items[0].key", ".spec.items[*].key", ".metadata.creationTimestamp",
    ".spec.items[?(@.key=='a')].value", ".spec['name']", "..name", ".spec.items[0:2]", "{.spec}",
    ".status.conditions[?(@.type==\"Ready\")].status", ".metadata.labels.a\\.b/c",
    ".spec.items[-1:]",
)  # fmt: skip
SELECTORS = (
    "a=b", "a!=b", "a in (b,c)", "a notin (b)", "!a", "a", "a>1", "a<5,b", "app.kubernetes.io/x=y",
    "metadata.name=a", "metadata.namespace!=default", "status.phase=Running", "spec.name=a",
)  # fmt: skip
SCHEMA_WORDS: Object = {
    "type": "object", "format": "duration", "pattern": "^[a-z]+$", "enum": ["a", 1, None],
    "default": {"a": 1}, "minLength": 1, "maxItems": 3, "multipleOf": 0.1, "nullable": True,
    "minimum": -1e308, "exclusiveMaximum": True, "uniqueItems": False, "required": ["a", "a"],
    "x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-int-or-string": True,
    "x-kubernetes-embedded-resource": True, "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["key"], "x-kubernetes-map-type": "atomic",
    "additionalProperties": {"type": "string"}, "properties": {"metadata": {"type": "object"}},
    "items": {"type": "array", "items": {}}, "oneOf": [{"required": ["a"]}, {"not": {}}],
    "anyOf": [{"properties": {"a": {"minimum": 1}}}], "allOf": [{}], "not": {"enum": [1]},
    "x-kubernetes-validations": [{"rule": "self.a == oldSelf.a", "messageExpression": "self.a"}],
    "$ref": "#/x", "description": "x", "title": "t", "example": {}, "externalDocs": {"url": "x"},
}  # fmt: skip
_SPEC: Object = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 100, "default": "a"},
        "replicas": {"type": "integer", "format": "int32", "minimum": 0},
        "limit": {"type": "integer"},
        "ratio": {"type": "number"},
        "wait": {"type": "string", "format": "duration"},
        "when": {"type": "string", "format": "date-time"},
        "size": {"x-kubernetes-int-or-string": True},
        "tags": {"type": "array", "maxItems": 50, "x-kubernetes-list-type": "set",
                 "items": {"type": "string", "maxLength": 40}},
        "items": {"type": "array", "maxItems": 50, "x-kubernetes-list-type": "map",
                  "x-kubernetes-list-map-keys": ["key"],
                  "items": {"type": "object", "required": ["key"], "properties": {
                      "key": {"type": "string", "maxLength": 40},
                      "value": {"type": "string", "pattern": "^[a-z]*$", "default": "v"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "inner": {"type": "object", "x-kubernetes-embedded-resource": True,
                  "x-kubernetes-preserve-unknown-fields": True},
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.limit) || !has(self.replicas) || self.replicas <= self.limit"},
        {"rule": "!has(oldSelf.name) || self.name != 'frozen' || oldSelf.name == self.name"},
    ],
}  # fmt: skip
SAMPLE: Object = {
    "apiVersion": f"{GROUP}/v1", "kind": "Sample",
    "metadata": {"name": "a", "labels": {"a": "b"}, "annotations": {"x.y/z": "w"}},
    "spec": {"name": "b", "replicas": 1, "limit": 5, "ratio": 0.5, "wait": "1h", "size": "1Ki",
             "when": "2024-01-01T00:00:00Z", "tags": ["a", "b"], "map": {"k": "v"},
             "items": [{"key": "a", "value": "b"}, {"key": "c"}], "free": {"x": [1, {"y": None}]},
             "inner": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "q"}}},
    "status": {"replicas": 1, "conditions": [{"type": "Ready", "status": "True"}]},
}  # fmt: skip
_BUILT_IN: tuple[tuple[str, Object], ...] = tuple(
    (path, {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, **more})
    for path, version, kind, more in (
        ("/api/v1/namespaces", "v1", "Namespace", {}),
        ("/api/v1/namespaces/default/configmaps", "v1", "ConfigMap", {"data": {"a": "b"}}),
        ("/api/v1/namespaces/default/secrets", "v1", "Secret", {"data": {"a": "YQ=="}}),
        ("/api/v1/namespaces/default/services", "v1", "Service",
         {"spec": {"ports": [{"port": 80, "targetPort": "x"}], "selector": {"a": "b"}}}),
        ("/api/v1/namespaces/default/pods", "v1", "Pod",
         {"spec": {"containers": [{"name": "a", "image": "b"}]}}),
        ("/apis/apps/v1/namespaces/default/deployments", "apps/v1", "Deployment",
         {"spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}},
                   "template": {"metadata": {"labels": {"a": "b"}},
                                "spec": {"containers": [{"name": "a", "image": "b"}]}}}}),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", "rbac.authorization.k8s.io/v1",
         "ClusterRole", {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        ("/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations",
         "storagemigration.k8s.io/v1beta1", "StorageVersionMigration",
         {"spec": {"resource": {"group": GROUP, "resource": "samples"}}}),
        ("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "authorization.k8s.io/v1",
         "SelfSubjectAccessReview",
         {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}),
    )
)  # fmt: skip


@dataclass(frozen=True)
class Resource:
    """A collection with an object that belongs in it."""

    path: str
    sample: Object


@dataclass
class Material:
    crds: list[Object] = field(default_factory=list)
    """Of the world; the fuzzer's own come and go."""
    resources: list[Resource] = field(default_factory=list)
    rules: list[str] = field(default_factory=lambda: list(CEL))
    yamls: dict[int, str] = field(default_factory=dict)
    """Of a resource's sample, by its place in ``resources``."""
    messages: list[tuple[str, bytes]] = field(default_factory=list)
    """A collection and a protobuf message for it."""


def sample_crd(plural: str = "samples", kind: str = "Sample") -> Object:
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    columns = [
        {"name": f"c{at}", "type": "string", "jsonPath": path}
        for at, path in enumerate(JSONPATHS[:6])
    ]
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    kept: Object = {
        "subresources": {"status": {}, "scale": scale},
        "additionalPrinterColumns": columns,
        "selectableFields": [{"jsonPath": ".spec.name"}],
    }
    schema = crds.fields(spec=_SPEC, status=status)
    names = (crds.version(name, schema, **kept) for name in ("v1", "v2"))
    return crds.crd(*names, group=GROUP, plural=plural, kind=kind)


def gathered() -> Material:
    material = Material(crds=[sample_crd(), *_real_crds()])
    for crd in material.crds:
        material.resources += _resources_of(crd)
    material.resources += [Resource(path, obj) for path, obj in (*_BUILT_IN, *_recorded())]
    for at, resource in enumerate(material.resources):
        material.yamls[at] = yaml.safe_dump(resource.sample)
        with contextlib.suppress(ProtobufError, UnknownKind):
            material.messages.append((resource.path, encode_object(resource.sample)))
    material.rules += _recorded_rules()
    return material


def _real_crds() -> Iterator[Object]:
    files = sorted(EXAMPLES.glob("*/crd.yaml"))
    for project in sorted(CORPUS.glob("*")):
        releases = sorted(path for path in project.glob("*") if path.is_dir())
        files += sorted(releases[-1].glob("*.yaml")) if releases else []
    for file in files:
        for document in documents(file.read_text(), str(file)):
            if len(json.dumps(document.value)) < _SMALL:
                yield _without_webhook(document.value)


def _without_webhook(crd: Object) -> Object:
    """Nobody answers: every other request would be upstream's 500."""
    spec = {**crd["spec"], "conversion": {"strategy": "None"}}
    return {**crd, "spec": spec}


def _resources_of(crd: Object) -> Iterator[Resource]:
    spec = crd["spec"]
    place = "/namespaces/default" if spec["scope"] == "Namespaced" else ""
    for version in spec["versions"]:
        path = f"/apis/{spec['group']}/{version['name']}{place}/{spec['names']['plural']}"
        frame = {
            "apiVersion": f"{spec['group']}/{version['name']}",
            "kind": spec["names"]["kind"],
            "metadata": {"name": "a"},
        }
        if spec["group"] == GROUP:
            yield Resource(path, {**SAMPLE, **frame})
            continue
        schema = version["schema"]["openAPIV3Schema"]
        for make in (minimal, generous):
            with contextlib.suppress(ValueError):
                yield Resource(path, {**make(schema), **frame})


def _recorded() -> Iterator[tuple[str, Object]]:
    """What a cluster was asked to create."""
    file = BUILTINS / "defaults.jsonl"
    if not file.exists():
        return
    for line in file.read_text().splitlines():
        told: Any = json.loads(line)
        if told["method"] == "POST" and isinstance(told.get("body"), dict):
            path = told["path"].partition("?")[0]
            parts = path.split("/")
            if "namespaces" in parts[:-1]:
                parts[parts.index("namespaces") + 1] = "default"
            yield "/".join(parts), told["body"]


def _recorded_rules() -> Iterator[str]:
    file = ORACLE / "cel-compile.jsonl"
    if not file.exists():
        return
    for line in file.read_text().splitlines():
        for rule in json.loads(line)["ask"]["schema"].get("x-kubernetes-validations", ()):
            yield rule["rule"]
