"""What the tests of the HTTP surface share: an example resource, and short ways to ask for it.

Texts in tests say ``ex.io``; each module's resources live in a group of their own, put in its
place, so that modules may share one server.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from instar.base.json_values import Object
from tests.support import crds
from tests.support.server import Answer, LiveServer

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

SPEC_SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "b": {"type": "boolean"},
        "n": {"type": "integer"},
        "f": {"type": "number"},
        "l": {"type": "array", "items": {"type": "string"}},
        "m": {"type": "object", "additionalProperties": {"type": "string"}},
        "e": {
            "type": "array",
            "items": {"type": "object", "properties": {"x": {"type": "string"}}},
        },
        "keep": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "null": {"type": "string", "nullable": True},
        "replicas": {"type": "integer"},
    },
}
STATUS_SCHEMA = {
    "type": "object",
    "properties": {
        "s": {"type": "string"},
        "replicas": {"type": "integer"},
        "selector": {"type": "string"},
    },
}
SCHEMA = crds.fields(spec=SPEC_SCHEMA, status=STATUS_SCHEMA)


def version(name: str, schema: Object = SCHEMA, **more: Any) -> Object:
    return crds.version(name, schema, **more)


def make_crd(
    group: str,
    versions: list[Object],
    *,
    plural: str = "foos",
    kind: str = "Foo",
    scope: str = "Namespaced",
    **names: Any,
) -> Object:
    return crds.crd(*versions, group=group, plural=plural, kind=kind, scope=scope, names=names)


SUBRESOURCES = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
}


def foo_crd(group: str) -> Object:
    """Namespaced; v1 with status and scale, v1beta1 deprecated and plain, v1alpha1 unserved."""
    selectable = [{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.n"}, {"jsonPath": ".spec.b"}]
    return make_crd(
        group,
        [
            version("v1", storage=True, subresources=SUBRESOURCES, selectableFields=selectable),
            version("v1beta1", deprecated=True),
            # Schemas equal in all versions would be shared, which upstream (and so we) refuse
            # together with selectableFields of one version only.
            version("v1alpha1", crds.PLAIN, served=False),
        ],
    )


def bar_crd(group: str) -> Object:
    """Cluster-scoped, one version, no subresources."""
    return make_crd(
        group, [version("v1", storage=True)], plural="bars", kind="Bar", scope="Cluster"
    )


@dataclass
class Collection:
    """One resource in one namespace of a live server."""

    server: LiveServer
    group: str
    plural: str = "foos"
    kind: str = "Foo"
    namespace: str = "default"
    version: str = "v1"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"

    @property
    def path(self) -> str:
        inside = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"{self.root}{inside}/{self.plural}"

    def at(self, **changes: Any) -> Collection:
        return Collection(**{**self.__dict__, **changes})

    def say(self, text: str) -> str:
        return text.replace("ex.io", self.group)

    def obj(self, name: str = "", **members: Any) -> Object:
        metadata = {**({"name": name} if name else {}), **members.pop("metadata", {})}
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "metadata": metadata,
            **members,
        }

    def request(self, method: str, rest: str = "", body: Any = None, **how: Any) -> Answer:
        if isinstance(body, str):
            body = self.say(body)
        return self.server.request(method, self.path + rest, body, **how)

    def create(self, name: str, **members: Any) -> Object:
        answer = self.request("POST", "", self.obj(name, **members))
        assert answer.status == 201, answer.text
        created: Object = answer.json
        return created

    def get(self, name: str) -> Object:
        answer = self.request("GET", f"/{name}")
        assert answer.status == 200, answer.text
        found: Object = answer.json
        return found

    def put(self, obj: Object, query: str = "", sub: str = "") -> Answer:
        return self.request("PUT", f"/{obj['metadata'].get('name')}{sub}{query}", obj)

    def patch(
        self, name: str, body: Any, kind: str = MERGE, query: str = "", sub: str = ""
    ) -> Answer:
        return self.request("PATCH", f"/{name}{sub}{query}", body, content_type=kind)

    def delete(self, name: str, query: str = "", body: Any = None) -> Answer:
        return self.request("DELETE", f"/{name}{query}", body)

    @contextmanager
    def watch(self, query: str = "", **how: Any) -> Iterator[Watch]:
        with watching(self.server, f"{self.path}?watch=1{query}", **how) as stream:
            yield stream


class KeptAlive(LiveServer):
    """A client that keeps its connection, for tests that ask a lot."""

    def __init__(self, server: LiveServer) -> None:
        super().__init__(server.running, server.loop)
        self._kept: http.client.HTTPSConnection | None = None

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
        token: str | None = "",
    ) -> Answer:
        if body is not None and not isinstance(body, bytes | str):
            body = json.dumps(body)
        sent = {"Content-Type": content_type, "Authorization": f"Bearer {self.token}"}
        if self._kept is None:
            self._kept = self.connection()
        try:
            self._kept.request(method, path, body=body, headers={**sent, **(headers or {})})
            answer = self._kept.getresponse()
            return Answer(answer.status, answer.getheaders(), answer.read())
        except BaseException:
            self._kept.close()
            self._kept = None
            raise


class Watch:
    """An open watch: events one by one, None at the end of the stream."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.answer = answer

    def event(self) -> Object | None:
        line = self.answer.readline()
        if not line:
            return None
        event: Object = json.loads(line)
        return event

    def events(self, count: int) -> list[Object]:
        found = [self.event() for _ in range(count)]
        assert None not in found
        return [event for event in found if event is not None]

    def initial_names(self) -> list[str]:
        """Names in the opening state; the watch must allow bookmarks."""
        names = []
        while (event := self.event()) is not None and event["type"] != "BOOKMARK":
            names.append(event["object"]["metadata"]["name"])
        return names

    def rest(self) -> list[Object]:
        """Everything until the server ends the stream."""
        found = []
        while (event := self.event()) is not None:
            found.append(event)
        return found


@contextmanager
def watching(
    server: LiveServer, path: str, *, accept: str = "application/json", timeout: float = 10.0
) -> Iterator[Watch]:
    connection = server.connection(timeout)
    headers = {"Authorization": f"Bearer {server.token}", "Accept": accept}
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    try:
        yield Watch(answer)
    finally:
        answer.close()
        connection.close()


def failed(answer: Answer, code: int, reason: str, message: str) -> Object:
    """The answer is this Status; its details are returned."""
    status = answer.json
    assert answer.status == code, answer.text
    assert status["message"] == message
    assert status.get("reason", "") == reason
    assert status["code"] == code
    assert (status["kind"], status["apiVersion"]) == ("Status", "v1")
    assert status["status"] == "Failure"
    details: Object = status.get("details", {})
    return details


def not_served(answer: Answer) -> None:
    """Upstream's plain-text 404 of a path nobody serves."""
    assert answer.status == 404, answer.text
    assert answer.header("content-type") == "text/plain; charset=utf-8"
    assert answer.text == "404 page not found\n"


def causes(answer: Answer) -> list[tuple[str, str, str]]:
    found = answer.json["details"]["causes"]
    return [(cause["reason"], cause["message"], cause["field"]) for cause in found]
