"""A backend with aggregated discovery and OpenAPI, and what this server shows of it."""

from __future__ import annotations

import threading
from typing import Any

from tests.aggregation.backend import AGGREGATED, Arrived, Wire, discovery
from tests.support.server import LiveServer
from tests.support.waiting import eventually


def aggregated(main: LiveServer) -> dict[str, dict[str, Any]]:
    """Group version → entry, of the aggregated document."""
    answer = main.request("GET", "/apis", headers={"Accept": AGGREGATED})
    return {
        f"{group['metadata']['name']}/{version['version']}": version
        for group in answer.json["items"]
        for version in group["versions"]
    }


def entry(main: LiveServer, name: str, freshness: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        found = aggregated(main).get(name)
        return found if found and found["freshness"] == freshness else None

    return eventually(look)


class Modern:
    """A backend with aggregated discovery and OpenAPI of ``group``, and more than that."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.version = "v1"
        self.resource = "things"
        self.etag = '"one"'
        self.broken = threading.Event()

    def __call__(self, arrived: Arrived, wire: Wire) -> None:
        if self.broken.is_set():
            wire.reply(503, b"", "text/plain")
        elif arrived.path == "/apis":
            self._discovery(arrived, wire)
        elif arrived.path == "/openapi/v2":
            wire.reply(200, self._swagger())
        elif arrived.path == "/openapi/v3":
            paths = (f"apis/{self.group}/v1", "apis/apps/v1", "api/v1", "apis/foreign.io/v1")
            told = {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash=ABC"} for path in paths}
            wire.reply(200, {"paths": told})
        elif arrived.path.startswith("/openapi/v3/"):
            wire.reply(200, {"openapi": "3.0.0", "by": arrived.one("X-Remote-User")})
        else:
            discovery(arrived, wire)

    def _discovery(self, arrived: Arrived, wire: Wire) -> None:
        if arrived.one("If-None-Match") == self.etag:
            wire.reply(304, b"", "")
            return
        groups = [(self.group, self.version), ("foreign.io", "v1")]
        items = [
            {
                "metadata": {"name": name},
                "versions": [
                    {
                        "version": version,
                        "freshness": "Current",
                        "resources": [
                            {
                                "resource": self.resource,
                                "scope": "Namespaced",
                                "singularResource": "thing",
                                "verbs": ["get", "list"],
                                "shortNames": ["th"],
                                "unknown": {"of": "the future"},
                            }
                        ],
                    }
                ],
            }
            for name, version in groups
        ]
        wire.reply(
            200, {"kind": "APIGroupDiscoveryList", "items": items}, AGGREGATED, ETag=self.etag
        )

    def _swagger(self) -> dict[str, Any]:
        def path(model: str) -> dict[str, Any]:
            schema = {"$ref": f"#/definitions/{model}"}
            return {"get": {"responses": {"200": {"description": "OK", "schema": schema}}}}

        status = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"
        meta = {"$ref": f"#/definitions/{status}"}
        return {
            "swagger": "2.0",
            "paths": {
                f"/apis/{self.group}/v1/things": path("org.Thing"),
                "/apis/foreign.io/v1/others": path("org.Other"),
                "/api/v1/pods": path("org.Other"),
            },
            "definitions": {
                "org.Thing": {"type": "object", "properties": {"status": meta}},
                "org.Other": {"type": "object"},
                status: {"type": "object", "description": "another one"},
            },
        }
