"""Protobuf over HTTP, as Go's clients speak it: the recorded negotiation, and their requests."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

import pytest

from instar.kube.protobuf.envelope import decode_object, encode_object
from instar.kube.protobuf.watch import decode_frame, frames
from tests.rest.support import Collection, make_crd, version
from tests.support.builtins import needs_builtins, recorded
from tests.support.server import Answer, LiveServer, live_server

PROTOBUF = "application/vnd.kubernetes.protobuf"
GO = f"{PROTOBUF},application/json"
UPSTREAMS_OWN = {
    "neg.cr.post.protobuf": "upstream's handler crashes",
    "neg.openapi.v2.protobuf": "another document, compared by its length only",
}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server() as server:
        server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "pb"}})
        for name in ("a", "b"):
            body = {"metadata": {"name": name}, "data": {"k": "v"}}
            server.request("POST", "/api/v1/namespaces/pb/configmaps", body)
        server.create_crd(make_crd("rec.example.com", [version("v1", storage=True)]))
        Collection(server, "rec.example.com", namespace="pb").create("f")
        yield server


@needs_builtins
@pytest.mark.parametrize(
    "row",
    recorded(
        "protobuf",
        lambda row: row["direction"] == "negotiation" and row["id"] not in UPSTREAMS_OWN,
    ),
)
def test_negotiation_as_recorded(server: LiveServer, row: dict[str, Any]) -> None:
    answer = _send(server, row)

    assert answer.status == row["status"], answer.text
    assert answer.header("content-type") == row["contentType"]
    if "bodyB64" in row and row["status"] >= 400:
        expected = decode_object(base64.b64decode(row["bodyB64"]))
        assert decode_object(answer.body)["message"] == expected["message"]
    elif row["status"] >= 400:
        assert answer.json["message"] == row["body"]["message"]
    elif row["contentType"].startswith(PROTOBUF):
        expected = decode_object(base64.b64decode(row["bodyB64"]))
        assert decode_object(answer.body)["kind"] == expected["kind"]


def _send(server: LiveServer, row: dict[str, Any]) -> Answer:
    body = row.get("requestBody")
    if "requestB64" in row:
        body = base64.b64decode(row["requestB64"])
    headers = {"Accept": row["accept"]} if row.get("accept") else {}
    media = row.get("requestContentType", "application/json")
    return server.request(
        row.get("method", "GET"), row["path"], body, content_type=media, headers=headers
    )


def test_go_writes_and_reads_a_crd_and_its_list(server: LiveServer) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    crd = make_crd("go.example.com", [version("v1", storage=True)])
    made = server.request(
        "POST", path, encode_object(crd), content_type=PROTOBUF, headers={"Accept": GO}
    )
    listed = server.request("GET", path, headers={"Accept": GO})

    assert made.status == 201
    assert decode_object(made.body)["spec"]["names"]["listKind"] == "FooList"
    names = [item["metadata"]["name"] for item in decode_object(listed.body)["items"]]
    assert "foos.go.example.com" in names


def test_a_watch_comes_in_frames(server: LiveServer) -> None:
    path = "/api/v1/namespaces/pb/configmaps?watch=1&timeoutSeconds=1"

    answer = server.request("GET", path, headers={"Accept": f"{PROTOBUF};stream=watch"})

    assert answer.header("content-type") == f"{PROTOBUF};stream=watch"
    events = [decode_frame(frame) for frame in frames(answer.body)]
    assert {event["type"] for event in events} == {"ADDED"}
    assert {"a", "b"} <= {event["object"]["metadata"]["name"] for event in events}


@pytest.mark.parametrize("path", ["/api", "/apis", "/apis/apps", "/api/v1", "/apis/apps/v1"])
def test_discovery_in_every_form(server: LiveServer, path: str) -> None:
    plain = server.request("GET", path).json

    binary = server.request("GET", path, headers={"Accept": PROTOBUF})
    yaml = server.request("GET", path, headers={"Accept": "application/yaml"})

    assert decode_object(binary.body)["kind"] == plain["kind"]
    assert re.search(rf"^kind: {plain['kind']}$", yaml.text, re.M)
