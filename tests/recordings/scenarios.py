"""A scenario: requests in their order, in a namespace and an API group of their own.

The modules of ``questions/`` write scenarios with it, ``playing.py`` sends them. Nothing here
does I/O. Scenarios do not depend on each other, so they may be sent in any order or at once.

A text ``{{STEP.a.b.0}}`` in a path or a body stands for that part of the raw answer to the step
of that label, ``{{hook.url}}`` and ``{{hook.ca}}`` for the webhook of the one who plays.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP_SUFFIX = "rec.example"
"""End of every group that a scenario makes."""


@dataclass(frozen=True)
class Ask:
    """One request."""

    name: str
    """Number and label, unique in its scenario."""
    method: str
    path: str
    body: Any = None
    """A text is sent as it is, anything else as JSON, or as protobuf if that is the media."""
    media: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    events: int = 0
    """A watch: so many events are read, then the connection is closed."""
    only_code: bool = False
    """The body is not kept: of a preparation, or of chance."""
    must_succeed: bool = False
    """A preparation: without it the rest of the scenario would ask nothing."""
    only_failure: bool = False
    """The body is kept only of a refusal: otherwise it would say what was sent."""
    unordered: bool = False
    """Upstream finds the causes by walking a Go map: in any order."""
    by_value: bool = False
    """An answer in YAML is compared by its value, not as text."""
    until_served: bool = False
    """Not recorded: asked again until it is answered with 200."""
    pause: float = 0.0
    """So long a recorder waits afterwards; kube-apiserver takes up some writes in its own time."""

    def digest(self) -> str:
        """Changes with the question, so that an answer to an older one is noticed."""
        asked = [self.method, self.path, self.body, self.media, list(self.headers), self.events]
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:8]


class Scenario:
    """Collects requests; its name is that of its namespace, too."""

    def __init__(self, name: str, *, managed: bool = False) -> None:
        self.name = name
        self.managed = managed
        """Whether managedFields are kept."""
        self.asks: list[Ask] = []
        self.group = f"{name}.{GROUP_SUFFIX}"

    def path(self, resource: str, name: str = "", version: str = "v1", group: str = "-") -> str:
        """Of a namespaced resource; of the scenario's own group unless one is named."""
        return self._path(resource, name, version, group, f"/namespaces/{self.name}")

    def cluster_path(
        self, resource: str, name: str = "", version: str = "v1", group: str = "-"
    ) -> str:
        return self._path(resource, name, version, group, "")

    def _path(self, resource: str, name: str, version: str, group: str, inside: str) -> str:
        group = self.group if group == "-" else group
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        return f"{root}{inside}/{resource}" + (f"/{quote(name, safe='/')}" if name else "")

    def ask(self, method: str, path: str, body: Any = None, label: str = "", **more: Any) -> None:
        number = f"{len(self.asks):03d}"
        headers = tuple(sorted(dict(more.pop("headers", {})).items()))
        name = f"{number} {label}" if label else number
        self.asks.append(Ask(name, method, path, body, headers=headers, **more))

    def get(self, path: str, label: str = "", accept: str = "", **more: Any) -> None:
        headers = {"Accept": accept} if accept else {}
        self.ask("GET", path, None, label, headers={**headers, **more.pop("headers", {})}, **more)

    def post(self, path: str, body: Any, label: str = "", **more: Any) -> None:
        self.ask("POST", path, body, label, **more)

    def put(self, path: str, body: Any, label: str = "", **more: Any) -> None:
        self.ask("PUT", path, body, label, **more)

    def delete(self, path: str, body: Any = None, label: str = "", **more: Any) -> None:
        self.ask("DELETE", path, body, label, **more)

    def merge(self, path: str, body: Any, label: str = "", **more: Any) -> None:
        self.ask("PATCH", path, body, label, media=MERGE, **more)

    def strategic(self, path: str, body: Any, label: str = "", **more: Any) -> None:
        self.ask("PATCH", path, body, label, media=STRATEGIC, **more)

    def json_patch(self, path: str, body: Any, label: str = "", **more: Any) -> None:
        self.ask("PATCH", path, body, label, media=JSON_PATCH, **more)

    def apply(self, path: str, body: Any, manager: str, label: str = "", **more: Any) -> None:
        force = "&force=true" if more.pop("force", False) else ""
        joint = "&" if "?" in path else "?"
        whole = f"{path}{joint}fieldManager={manager}{force}"
        self.ask("PATCH", whole, body, label, media=APPLY, **more)

    def watch(self, path: str, events: int, label: str = "", accept: str = "") -> None:
        joint = "&" if "?" in path else "?"
        self.get(f"{path}{joint}watch=1&timeoutSeconds=20", label, accept, events=events)

    def make_crd(self, document: Object) -> None:
        """A CRD whose every served version can be used afterwards."""
        self.post(CRDS, document, "crd", only_code=True, must_succeed=True)
        spec = document["spec"]
        for version in spec["versions"]:
            if version["served"]:
                self.wait_for(f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}")

    def change_crd(self, name: str, change: Any, label: str = "") -> None:
        """By merge patch; the recorder waits until the change is served."""
        self.merge(
            f"{CRDS}/{name}",
            change,
            label or "crd changed",
            only_code=True,
            must_succeed=True,
            pause=3.0,
        )

    def wait_for(self, path: str) -> None:
        self.asks.append(Ask(f"{len(self.asks):03d} wait", "GET", path, until_served=True))

    def crd(self, versions: Any, *, plural: str = "foos", kind: str = "Foo", **spec: Any) -> Object:
        """A v1 CRD of the scenario's group; ``versions``: a schema of v1, or the list."""
        if isinstance(versions, Mapping):
            versions = [a_version("v1", versions)]
        names = {"plural": plural, "kind": kind, **spec.pop("names", {})}
        whole = {"group": self.group, "scope": "Namespaced", "names": names, "versions": versions}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{self.group}"},
            "spec": {**whole, **spec},
        }

    def object(self, name: str, *, kind: str = "Foo", version: str = "v1", **fields: Any) -> Object:
        """A custom resource of the scenario's group."""
        metadata = {"name": name, **fields.pop("metadata", {})}
        return {
            "apiVersion": f"{self.group}/{version}", "kind": kind, "metadata": metadata, **fields,
        }  # fmt: skip


def a_version(name: str, schema: Mapping[str, Any], **more: Any) -> Object:
    """Served, and the storage version unless ``storage`` says otherwise."""
    return {
        "name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": dict(schema)},
        **more,
    }  # fmt: skip


def with_spec(**properties: Any) -> Object:
    """The schema of an object whose ``spec`` has these properties."""
    spec = {"type": "object", "properties": properties}
    return {"type": "object", "properties": {"spec": spec}}
