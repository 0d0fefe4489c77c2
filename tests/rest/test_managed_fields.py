"""Who owns which field of a new built-in object, as recorded: what a kind shows before anybody
sets it has no owner, and the status of a CRD belongs to the server that wrote it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builtins import needs_builtins, recorded
from tests.support.server import LiveServer

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def without_times(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    """By manager: entries are listed by time, and a second may end between the two writes."""
    entries = [
        {name: value for name, value in entry.items() if name != "time"}
        for entry in metadata["managedFields"]
    ]
    return sorted(entries, key=lambda entry: str(entry["manager"]))


def row(id: str) -> dict[str, Any]:
    (found,) = recorded("protobuf", lambda line: line["id"] == id)
    shown: dict[str, Any] = found.values[0]["json"]
    return shown


@needs_builtins
@pytest.mark.parametrize("name", ["minimal", "allFeatures"])
def test_fields_of_a_crd_as_recorded(server: LiveServer, name: str) -> None:
    sent, shown = row(f"enc.crd.{name}"), row(f"get.crd.{name.removesuffix('Features')}")

    answer = server.request("POST", f"{CRDS}?fieldManager=rec", sent)

    assert answer.status == 201, answer.text
    crd = server.request("GET", f"{CRDS}/{sent['metadata']['name']}").json
    assert without_times(crd["metadata"]) == without_times(shown["metadata"])
    server.request("DELETE", f"{CRDS}/{sent['metadata']['name']}")


@needs_builtins
@pytest.mark.parametrize(
    ("path", "id"),
    [
        ("/apis/apps/v1/namespaces/default/deployments", "get.deployment.minimal"),
        ("/apis/apps/v1/namespaces/default/deployments", "get.deployment.rich"),
    ],
)
def test_fields_of_a_new_object_as_recorded(server: LiveServer, path: str, id: str) -> None:
    shown = row(id)
    body = {**shown, "metadata": {**shown["metadata"], "namespace": "default"}}
    body["metadata"] = {
        name: value
        for name, value in body["metadata"].items()
        if name in ("name", "labels", "annotations")
    }

    answer = server.request("POST", f"{path}?fieldManager=rec", body)

    assert answer.status == 201, answer.text
    assert without_times(answer.json["metadata"]) == without_times(shown["metadata"])
    server.request("DELETE", f"{path}/{body['metadata']['name']}")
