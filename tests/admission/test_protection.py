"""``--protect-crds``: a CRD that has objects is not deleted by a slip."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from instar.server.registry.admission.plugin_names import CRD_PROTECTION, HERE
from instar.server.registry.admission.plugins.crd_protection import ALLOWS
from tests.admission.conftest import widget_crd
from tests.admission.test_plugins import read
from tests.rest.support import Collection
from tests.support.server import LiveServer, live_server

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = f"{CRDS}/widgets.ref.io"


@pytest.fixture
def guarded() -> Iterator[LiveServer]:
    with live_server(admission_plugins=HERE | {CRD_PROTECTION}) as server:
        server.create_crd(widget_crd())
        made = server.request(
            "POST",
            "/apis/ref.io/v1/namespaces/default/widgets",
            {"apiVersion": "ref.io/v1", "kind": "Widget", "metadata": {"name": "one"}},
        )
        assert made.status == 201
        yield server


def test_the_flag_turns_it_on() -> None:
    assert CRD_PROTECTION in read("--protect-crds")
    assert CRD_PROTECTION not in read()


@pytest.mark.parametrize("path", [CRD, CRDS])
def test_a_crd_with_objects_is_kept(guarded: LiveServer, path: str) -> None:
    answer = guarded.request("DELETE", path)

    assert answer.status == 403
    assert answer.json["message"] == (
        'customresourcedefinitions.apiextensions.k8s.io "widgets.ref.io" is forbidden: 1 object '
        "would be deleted with it; delete them first, or annotate the CRD with "
        "instar.dev/allow-deletion=true"
    )
    assert guarded.request("GET", CRD).status == 200


def test_an_annotation_allows_the_deletion_of_a_crd_with_objects(guarded: LiveServer) -> None:
    patch = {"metadata": {"annotations": {ALLOWS: "true"}}}
    guarded.request("PATCH", CRD, patch, content_type="application/merge-patch+json")

    assert guarded.request("DELETE", CRD).status == 200


def test_a_crd_without_objects_goes(guarded: LiveServer) -> None:
    Collection(guarded, "ref.io", "widgets", "Widget").delete("one")

    assert guarded.request("DELETE", CRD).status == 200
