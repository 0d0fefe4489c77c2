"""The matrix of writes: PUT, JSON patch, merge patch and apply of every built-in resource and of
every subresource that can be written, as JSON, YAML and protobuf.

The cells come from the table of resources, which is a server's discovery (alpha and beta versions are not served by default): a resource that has no
manifest here fails ``test_matrix.py``. All writes are dry runs on one object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from instar.base.json_values import Object
from instar.kube.facts.resources import ResourceFacts, resources
from tests.recordings.questions.builtin_kinds import CLUSTERED, NAMESPACED, filled
from tests.recordings.scenarios import JSON, PROTOBUF, YAML, Scenario

_POLICY: Object = {
    "matchConstraints": {
        "resourceRules": [
            {"operations": ["CREATE"], "apiGroups": ["none.example"], "apiVersions": ["v1"], "resources": ["x"]}
        ]
    }
}  # fmt: skip
LEFT_OUT = {
    ("apiregistration.k8s.io", "apiservices"): "an APIService changes what is served to all",
    ("networking.k8s.io", "servicecidrs"): "a ServiceCIDR waits for a controller",
    ("storagemigration.k8s.io", "storageversionmigrations"): "not served by a default server",
}
_PROXIES = ("proxy",)
_FURTHER: list[tuple[str, str, Object]] = [
    ("networking.k8s.io", "ipaddresses", {"spec": {"parentRef": {"group": "", "resource": "services", "namespace": "n", "name": "s"}}}),
    ("storage.k8s.io", "csistoragecapacities", {"storageClassName": "fast", "capacity": "1Gi"}),
    ("storage.k8s.io", "volumeattributesclasses", {"driverName": "d", "parameters": {"a": "b"}}),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies", {"spec": {**_POLICY, "validations": [{"expression": "true"}]}}),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings", {"spec": {"policyName": "p", "validationActions": ["Deny"]}}),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies", {"spec": {**_POLICY, "reinvocationPolicy": "Never", "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}]}}),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings", {"spec": {"policyName": "p"}}),
    ("apiextensions.k8s.io", "customresourcedefinitions", {"spec": {"group": "matrix.rec.example", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"}, "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}),
    ("resource.k8s.io", "resourceclaimtemplates", {"spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}}}),
    ("resource.k8s.io", "resourceslices", {"spec": {"driver": "d.example", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "allNodes": True, "devices": [{"name": "d"}]}}),
]  # fmt: skip
MANIFESTS: dict[tuple[str, str], Object] = {
    (group.partition("@")[0], plural): fields
    for group, plural, fields in [*NAMESPACED, *CLUSTERED, *_FURTHER]
}
_NAMES = {
    "customresourcedefinitions": "foos.matrix.rec.example",
    "ipaddresses": "10.0.0.77",
}
_PLAIN: dict[tuple[str, str], Object] = {
    ("", "resourcequotas"): {"spec": {"hard": {"pods": "5"}}},
}
"""Manifests that the table of kinds has on purpose as a refusal."""
_TOUCHED = (
    "resourcequotas",
    "validatingadmissionpolicies",
    "flowschemas",
    "prioritylevelconfigurations",
)
"""Resources whose status a controller writes in its own time: only codes are compared."""


def writable() -> Iterator[tuple[ResourceFacts, list[str]]]:
    """Every resource that can be written, with the parts that can: "" is the object itself."""
    for each in resources():
        served = "alpha" not in each.version and "beta" not in each.version
        if not served or "update" not in each.verbs or (each.group, each.plural) in LEFT_OUT:
            continue
        parts = [
            part.name
            for part in each.subresources
            if {"update", "patch"} & set(part.verbs) and part.name not in _PROXIES
        ]
        yield each, ["", *parts]


def scenarios() -> Iterator[Scenario]:
    for resource, parts in writable():
        if (resource.group, resource.plural) in MANIFESTS:
            yield _cells(resource, parts)


def _cells(resource: ResourceFacts, parts: list[str]) -> Scenario:
    short = resource.group.partition(".")[0] or "core"
    scenario = Scenario(f"matrix-{short}-{resource.version}-{resource.plural}"[:63].rstrip("-"))
    path_of = scenario.path if resource.namespaced else scenario.cluster_path
    collection = path_of(resource.plural, group=resource.group, version=resource.version)
    key = (resource.group, resource.plural)
    fields = filled(_PLAIN.get(key, MANIFESTS[key]), scenario.name)
    name = _NAMES.get(resource.plural, f"{scenario.name}-o"[-60:].lstrip("-"))
    metadata = {**fields.get("metadata", {}), "name": name}
    whole = {"apiVersion": resource.api_version, "kind": resource.kind, **fields}
    scenario.post(collection, {**whole, "metadata": metadata}, "made")
    for part in parts:
        path = f"{collection}/{name}" + (f"/{part}" if part else "")
        version = {"resourceVersion": "{{made.metadata.resourceVersion}}"}
        steady = resource.plural not in _TOUCHED
        body = {**whole, "metadata": {**metadata, **(version if steady else {})}}
        if part == "scale":
            body = {
                "apiVersion": "autoscaling/v1", "kind": "Scale",
                "metadata": {"name": name, "namespace": scenario.name}, "spec": {"replicas": 3},
            }  # fmt: skip
        verbs = _verbs(resource, part)
        if "update" in verbs:
            _puts(scenario, f"{path}?dryRun=All", body, part, only_code=not steady, by_value=True)
        if "patch" in verbs:
            _patches(
                scenario,
                f"{path}?dryRun=All",
                body,
                name,
                part,
                only_code=not steady,
                by_value=True,
            )
    scenario.delete(f"{collection}/{name}", {"gracePeriodSeconds": 0}, "deleted", only_code=True)
    return scenario


def _verbs(resource: ResourceFacts, part: str) -> tuple[str, ...]:
    if not part:
        return resource.verbs
    return next(each.verbs for each in resource.subresources if each.name == part)


def _puts(scenario: Scenario, path: str, body: Object, part: str, **more: Any) -> None:
    scenario.put(path, body, f"put {part} json", headers={"Accept": JSON}, **more)
    text = yaml.safe_dump(body)
    scenario.put(path, text, f"put {part} yaml", media=YAML, headers={"Accept": YAML}, **more)
    scenario.put(
        path, body, f"put {part} proto", media=PROTOBUF, headers={"Accept": PROTOBUF}, **more
    )


def _patches(
    scenario: Scenario, path: str, body: Object, name: str, part: str, **more: Any
) -> None:
    labels = {"metadata": {"labels": {"x": "y"}}}
    change: Any = {"spec": {"replicas": 2}} if part == "scale" else labels
    added = [{"op": "add", "path": "/metadata/annotations", "value": {"x": "y"}}]
    scenario.merge(path, change, f"merge {part} json", headers={"Accept": JSON}, **more)
    scenario.merge(path, change, f"merge {part} proto", headers={"Accept": PROTOBUF}, **more)
    scenario.strategic(path, change, f"strategic {part} yaml", headers={"Accept": YAML}, **more)
    scenario.json_patch(path, added, f"json patch {part} json", headers={"Accept": JSON}, **more)
    scenario.json_patch(
        path, added, f"json patch {part} proto", headers={"Accept": PROTOBUF}, **more
    )
    head = {"apiVersion": body["apiVersion"], "kind": body["kind"]}
    applied = yaml.safe_dump({**head, "metadata": {"name": name, "labels": {"x": "a"}}})
    if part == "scale":
        applied = yaml.safe_dump({**head, "metadata": {"name": name}, "spec": {"replicas": 5}})
    for accept, word in ((JSON, "json"), (YAML, "yaml"), (PROTOBUF, "proto")):
        scenario.apply(
            path,
            applied,
            "matrix",
            f"apply {part} {word}",
            force=True,
            headers={"Accept": accept},
            **more,
        )
