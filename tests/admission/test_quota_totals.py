"""Usage of quotas is summed up once and then follows the changes: it is what a recount would give,
and a create costs the same however many objects there are."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from instar.server.registry.admission.plugins.quota.quota_scopes import in_scope
from instar.server.registry.admission.plugins.quota.quota_usage import object_usage
from instar.server.registry.admission.plugins.quota.usage_totals import (
    UsageTotals,
    _Total,
    selection,
)
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

PODS = "/api/v1/namespaces/default/pods"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server() as running:
        yield running


def pod(name: str, cpu: int, ends: bool = False) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": f"{cpu}m"}}}
    spec: dict[str, Any] = {"containers": [container]}
    if ends:
        spec["activeDeadlineSeconds"] = 10
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def quota(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "delete", "finish", "ask"]),
        st.integers(0, 3),
        st.integers(1, 9),
        st.booleans(),
    ),
    max_size=14,
)


@settings(deadline=None, max_examples=15, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_a_total_is_what_a_recount_gives(server: LiveServer, steps: list[Any]) -> None:
    machinery = server.running.machinery
    pods = machinery.catalog.builtin("", "pods").objects
    totals = UsageTotals(machinery.backend)
    scoped = quota("q", hard={}, scopes=["NotTerminating"])
    names = ["pods", "requests.cpu", "count/pods"]
    wanted = selection(("", "pods"), "default", names, scoped)
    server.run(totals.of(pods, wanted))

    for what, number, cpu, ends in steps:
        name = f"p{number}"
        if what == "create":
            server.request("POST", PODS, pod(name, cpu, ends))
        elif what == "delete":
            server.request("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
        elif what == "finish":
            done = {"status": {"phase": "Succeeded"}}
            server.request("PATCH", f"{PODS}/{name}/status", done, content_type=MERGE)

    counted = dict.fromkeys(names, Fraction())
    for entry in pods.entries.values():
        obj = entry.decode()
        if in_scope(scoped, "", "pods", obj):
            for name, amount in object_usage("", "pods", obj).items():
                if name in counted:
                    counted[name] += amount
    assert totals.known(wanted) == counted
    server.request("DELETE", f"{PODS}?gracePeriodSeconds=0")
    eventually(lambda: not pods.entries)


def test_a_create_looks_at_no_other_object(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        assert server.request("POST", PODS, pod(f"many-{number}", 1)).status == 201
    hard = {"requests.cpu": "35m", "pods": "1000"}
    assert server.request("POST", QUOTAS, quota("limit", hard=hard)).status == 201
    assert server.request("POST", PODS, pod("first", 1)).status == 201
    looked: set[str] = set()
    amounts = _Total._amounts

    def counted(self: _Total, entry: Any) -> Any:
        looked.add(entry.suffix)
        return amounts(self, entry)

    monkeypatch.setattr(_Total, "_amounts", counted)
    fits = server.request("POST", PODS, pod("second", 4))
    exceeds = server.request("POST", PODS, pod("third", 1))

    assert (fits.status, exceeds.status) == (201, 403)
    assert "used: requests.cpu=35m, limited: requests.cpu=35m" in exceeds.json["message"]
    assert looked == {"default/second"}
    server.request("DELETE", f"{QUOTAS}/limit")
