"""``instar serve --review``: a breaking CRD update is told, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from instar.review import breaking
from tests.support import crds
from tests.support.crds import fields, version
from tests.support.server import live_server

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def crd(*names: str) -> dict[str, Any]:
    properties = {name: {"type": "string"} for name in names}
    schema = fields(spec=fields(**properties))
    return crds.crd(
        version("v1", schema), group="review.example.com", plural="things", kind="Thing"
    )


@pytest.mark.parametrize(("deny", "status"), [(False, 200), (True, 403)])
def test_a_removed_field_is_reported_or_refused(deny: bool, status: int) -> None:
    with live_server(review=breaking, deny_breaking=deny) as server:
        server.create_crd(crd("kept", "gone"))
        current = server.request("GET", f"{PATH}/things.review.example.com").json
        current["spec"] = crd("kept")["spec"]

        answer = server.request("PUT", f"{PATH}/things.review.example.com", current)

        assert answer.status == status, answer.text
        told = answer.json["message"] if deny else " ".join(answer.warnings)
        assert "field-removed: v1 spec.gone" in told


def test_a_harmless_change_is_not_mentioned() -> None:
    with live_server(review=breaking, deny_breaking=True) as server:
        server.create_crd(crd("kept"))
        current = server.request("GET", f"{PATH}/things.review.example.com").json
        current["spec"] = crd("kept", "new")["spec"]

        answer = server.request("PUT", f"{PATH}/things.review.example.com", current)

        assert (answer.status, answer.warnings) == (200, [])
