"""``--runtime-config``: built-in versions that are switched off are not served."""

from __future__ import annotations

import pytest

from instar.cli.serving.runtime_config import switched_off
from instar.cli.shared.failure import CliFailure
from tests.support.server import live_server


def test_versions_are_named_with_commas_and_in_several_flags() -> None:
    found = switched_off(["batch/v1=false,autoscaling/v1=0", "apps/v1=true", "batch/v9=false"])

    assert found == {("batch", "v1"), ("autoscaling", "v1")}


@pytest.mark.parametrize("value", ["api/all=true", "api/beta=false", "api/ga=true", "v1=true", ""])
def test_settings_that_restate_the_default_are_accepted(value: str) -> None:
    assert switched_off([value]) == frozenset()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("nosuch/v1=true", "unknown api groups nosuch/v1"),
        ("foo=true", "runtime-config invalid key foo"),
        ("batch/v1/jobs=false", "runtime-config invalid key batch/v1/jobs"),
        ("batch/v1=maybe", "invalid value batch/v1=maybe"),
        ("v1=false", "cannot switch it off"),
        ("api/all=false", "cannot switch it off"),
        ("policy/v1=false", "cannot switch it off"),
    ],
)
def test_settings_that_cannot_be_honoured_are_refused(value: str, told: str) -> None:
    with pytest.raises(CliFailure, match=told):
        switched_off([value])


def test_a_version_that_is_off_is_neither_served_nor_discovered() -> None:
    off = switched_off(["batch/v1=false,autoscaling/v1=false"])
    with live_server(storage="memory:", furniture=True, versions_off=off) as server:
        jobs = server.request("GET", "/apis/batch/v1/jobs")
        old = server.request("GET", "/apis/autoscaling/v1/horizontalpodautoscalers")
        new = server.request("GET", "/apis/autoscaling/v2/horizontalpodautoscalers")
        groups = server.request("GET", "/apis").json["groups"]
        openapi = server.request("GET", "/openapi/v3").json["paths"]

    versions = {group["name"]: [one["version"] for one in group["versions"]] for group in groups}
    assert (jobs.status, old.status, new.status) == (404, 404, 200)
    assert "batch" not in versions
    assert versions["autoscaling"] == ["v2"]
    assert "apis/batch/v1" not in openapi
