"""Deletions nobody typed: the collector's and a leaving namespace's are ordinary requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.admission.conftest import widget_crd
from tests.rest.support import Collection
from tests.support.admission import AdmissionHook, configuration, configured, denying
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

DELETES = {
    "operations": ["DELETE"],
    "apiGroups": ["ref.io"],
    "apiVersions": ["*"],
    "resources": ["widgets"],
}


@pytest.fixture
def kept() -> Iterator[LiveServer]:
    with live_server() as server:
        server.create_crd(widget_crd())
        yield server


def test_a_namespace_keeps_what_a_webhook_guards(kept: LiveServer, hook: AdmissionHook) -> None:
    kept.request("POST", "/api/v1/namespaces", {"metadata": {"name": "leaving"}})
    widgets = Collection(kept, "ref.io", "widgets", "Widget", "leaving")
    widgets.create("guarded")
    kept.request(
        "POST", "/api/v1/namespaces/leaving/configmaps", {"metadata": {"name": "unguarded"}}
    )
    hook.says["/v"] = lambda request: denying("keep it")
    webhook = hook.webhook("v.ref.io", "/v", rules=[DELETES])
    with configured(kept, configuration("Validating", webhook)):
        kept.request("DELETE", "/api/v1/namespaces/leaving")
        hook.wait_for_calls(2)
        path = "/api/v1/namespaces/leaving/configmaps/unguarded"
        eventually(lambda: kept.request("GET", path).status == 404)
        still = widgets.request("GET", "/guarded").status

    assert still == 200
    seen = hook.asked()[0]
    assert "name" not in seen
    assert seen["userInfo"]["username"].endswith(":namespace-controller")
    assert seen["options"]["propagationPolicy"] == "Background"
    eventually(lambda: kept.request("GET", "/api/v1/namespaces/leaving").status == 404, 20)


def test_admission_may_refuse_the_garbage_collector(kept: LiveServer, hook: AdmissionHook) -> None:
    widgets = Collection(kept, "ref.io", "widgets", "Widget")
    owner = widgets.create("owner")
    reference = {
        "apiVersion": "ref.io/v1",
        "kind": "Widget",
        "name": "owner",
        "uid": owner["metadata"]["uid"],
    }
    widgets.create("dependent", metadata={"ownerReferences": [reference]})
    hook.says["/v"] = lambda request: denying("keep it")
    selector = {"matchExpressions": [{"key": "free", "operator": "DoesNotExist"}]}
    with configured(
        kept,
        configuration(
            "Validating",
            hook.webhook("v.ref.io", "/v", rules=[DELETES], objectSelector=selector),
        ),
    ):
        widgets.patch("owner", {"metadata": {"labels": {"free": "1"}}})
        assert widgets.delete("owner").status == 200
        hook.wait_for_calls(1)
        assert widgets.request("GET", "/dependent").status == 200

    eventually(lambda: widgets.request("GET", "/dependent").status == 404, 30)


def test_a_crds_objects_are_deleted_without_webhook_calls(
    kept: LiveServer, hook: AdmissionHook
) -> None:
    widgets = Collection(kept, "ref.io", "widgets", "Widget")
    widgets.create("doomed")
    hook.says["/v"] = lambda request: denying("keep it")
    webhook = hook.webhook("v.ref.io", "/v", rules=[DELETES])
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    with configured(kept, configuration("Validating", webhook)):
        assert kept.request("DELETE", f"{crds}/widgets.ref.io").status == 200
        eventually(lambda: kept.request("GET", f"{crds}/widgets.ref.io").status == 404)

    assert hook.calls == []
