"""A status that exists only as a default follows the default of the next release."""

from __future__ import annotations

import yaml

from instar.base.json_values import Object, copy_json
from instar.tools.reviewer.report import Damage
from tests.rehearsal.worlds import SIZE, crd, owned, rehearsed, version, widget, world
from tests.support.corpus import CORPUS, needs_corpus
from tests.support.server import live_server


def _release(reason: str) -> Object:
    made = crd(version("v1", {"size": SIZE}))
    properties = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties["status"] = {
        "type": "object",
        "default": {"phase": reason},
        "properties": {"phase": {"type": "string"}},
    }
    return made


OLD, NEW = _release("Waiting"), _release("Pending")
SPEC_OWNER = owned("helm", "v1", {"f:spec": {"f:size": {}}})
STATUS_OWNER = owned("controller", "v1", {"f:status": {"f:phase": {}}}, subresource="status")


def _objects(number: int, phase: str, *owners: Object) -> list[Object]:
    return [
        {
            **widget(each, "v1", {"size": each}, managedFields=copy_json(list(owners))),
            "status": {"phase": phase},
        }
        for each in range(number)
    ]


def _changed(objects: list[Object]) -> dict[Damage, int]:
    report = rehearsed(world(OLD, objects), NEW, faults=False)
    return dict(report.crds[0].steps[0].damages.counts)


def test_a_changed_default_inside_an_absent_status_is_foretold() -> None:
    assert _changed(_objects(4, "Waiting", SPEC_OWNER)) == {Damage.CHANGED: 4}


def test_a_status_with_an_owner_is_stored_and_stays() -> None:
    assert _changed(_objects(4, "Waiting", SPEC_OWNER, STATUS_OWNER)) == {}


def test_a_status_that_is_not_the_default_stays() -> None:
    assert _changed(_objects(4, "Ready", SPEC_OWNER)) == {}


def test_an_object_whose_fields_are_not_tracked_stays() -> None:
    assert _changed(_objects(4, "Waiting")) == {}


@needs_corpus
def test_gateway_classes_of_release_1_0_change_under_1_4_as_a_server_shows_it() -> None:
    """The releases differ in the default of ``status``, which no controller has written yet."""
    old, new = _gateway_classes("v1.0.0"), _gateway_classes("v1.4.0")
    with live_server() as server:
        server.create_crd(old)
        path = "/apis/gateway.networking.k8s.io/v1/gatewayclasses"
        for number in range(4):
            assert server.request("POST", path, _gateway_class(number)).status == 201
        before = server.request("GET", path).json["items"]
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        name = old["metadata"]["name"]
        current = server.request("GET", f"{crds}/{name}").json
        server.request("PUT", f"{crds}/{name}", {**current, "spec": new["spec"]})
        after = server.request("GET", path).json["items"]

    report = rehearsed(world(old, before), new, faults=False)

    changed = sum(then["status"] != now["status"] for then, now in zip(before, after, strict=True))
    assert changed == 4
    assert report.crds[0].steps[0].damages.counts[Damage.CHANGED] == changed


def _gateway_classes(release: str) -> Object:
    file = CORPUS / "gateway-api" / release / "gateway.networking.k8s.io_gatewayclasses.yaml"
    document: Object = yaml.safe_load(file.read_text())
    return document


def _gateway_class(number: int) -> Object:
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "GatewayClass",
        "metadata": {"name": f"g{number}"},
        "spec": {"controllerName": "example.com/controller"},
    }
