"""OpenAPI documents of this server with those of backends in them."""

from __future__ import annotations

import json

from tests.aggregation.backend import Arrived, Backend, Wire
from tests.aggregation.modern import Modern
from tests.aggregation.support import APIS, add_service, api_service, register, remote, wait_for
from tests.support.server import LiveServer
from tests.support.waiting import eventually

_MERGE = "application/merge-patch+json"


def test_openapi_v3_has_only_the_key_that_is_routed(main: LiveServer, modern: Modern) -> None:
    """Line 36."""
    key = f"apis/{modern.group}/v1"

    paths = eventually(
        lambda: (
            (found := main.request("GET", "/openapi/v3").json["paths"]) and key in found and found
        )
    )

    assert paths[key] == {"serverRelativeURL": f"/openapi/v3/{key}?hash=ABC"}
    assert "hash=ABC" not in paths["apis/apps/v1"]["serverRelativeURL"]
    assert "apis/foreign.io/v1" not in paths
    document = main.request("GET", f"/openapi/v3/{key}?hash=ABC", headers={"X-Remote-User": "x"})
    assert document.json["by"] == "kubernetes-admin", "asked as the caller"


def test_openapi_v2_has_the_paths_of_the_route_and_what_they_need(
    main: LiveServer, modern: Modern
) -> None:
    """Line 35."""
    status = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"

    document = eventually(
        lambda: (
            (found := main.request("GET", "/openapi/v2").json)
            and f"/apis/{modern.group}/v1/things" in found["paths"]
            and found
        )
    )

    definitions = document["definitions"]
    assert "/apis/foreign.io/v1/others" not in document["paths"]
    assert "/api/v1/pods" in document["paths"]
    assert "org.Other" not in definitions
    renamed = definitions["org.Thing"]["properties"]["status"]["$ref"]
    assert renamed == f"#/definitions/{status}_v2"
    assert definitions[f"{status}_v2"]["description"] == "another one"
    assert definitions[status]["description"] != "another one"


def test_a_route_that_begins_as_a_local_one_gets_its_openapi(main: LiveServer) -> None:
    """Line 37: kube-apiserver never fetches it."""
    script = Modern("flipped.example.com")
    main.request("POST", APIS, api_service(script.group))
    wait_for(main, f"v1.{script.group}", "True", "Local")
    with Backend(script) as backend:
        add_service(main)
        patch = {"spec": {"service": remote(backend.port), "caBundle": backend.ca_bundle}}
        main.request("PATCH", f"{APIS}/v1.{script.group}", patch, content_type=_MERGE)

        path = f"/apis/{script.group}/v1/things"
        found = eventually(lambda: path in main.request("GET", "/openapi/v2").json["paths"])

    assert found


def test_a_backend_without_openapi_v3_is_converted(main: LiveServer) -> None:
    """Line 36."""
    script = Modern("swagger.example.com")

    def older(arrived: Arrived, wire: Wire) -> None:
        if arrived.path == "/openapi/v3":
            wire.reply(404, b"", "text/plain")
        else:
            script(arrived, wire)

    key = f"apis/{script.group}/v1"
    with Backend(older) as backend:
        register(main, backend, script.group)
        eventually(lambda: key in main.request("GET", "/openapi/v3").json["paths"])
        document = main.request("GET", f"/openapi/v3/{key}").json

    answer = document["paths"][f"/{key}/things"]["get"]["responses"]["200"]
    assert document["openapi"] == "3.0.0"
    assert answer["description"] == "OK"
    assert "org.Thing" in document["components"]["schemas"]
    assert "#/definitions/" not in json.dumps(document)
