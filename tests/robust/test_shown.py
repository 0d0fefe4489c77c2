"""What can be stored can be shown, in every form: no object makes a list unreadable for others."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from instar.base.errors import Internal
from instar.base.times import micro_time_text, time_text
from instar.kube.protobuf.envelope import decode_object, encode_object, has_message
from instar.kube.protobuf.errors import MessageError
from instar.server.registry.kinds.builtin_resources import builtin_servings
from instar.server.rest.responses import to_protobuf
from tests.support.server import LiveServer, live_server

FORMS = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
MOMENTS = st.datetimes(timezones=st.just(UTC))


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server() as running:
        yield running


def lease(name: str, text: str) -> dict[str, Any]:
    kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    return {**kind, "metadata": {"name": name}, "spec": {"renewTime": text, "acquireTime": text}}


@given(MOMENTS)
def test_a_time_is_written_with_four_digits_of_a_year(moment: datetime) -> None:
    text, micro = time_text(moment), micro_time_text(moment)

    assert (len(text), len(micro)) == (20, 27)
    assert datetime.fromisoformat(text) == moment.replace(microsecond=0)
    assert datetime.fromisoformat(micro) == moment


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(MOMENTS)
def test_a_lease_of_any_time_is_shown_in_every_form(server: LiveServer, moment: datetime) -> None:
    server.request("DELETE", f"{LEASES}/any")
    made = server.request("POST", LEASES, lease("any", micro_time_text(moment)))
    answers = [server.request("GET", LEASES, headers={"Accept": form}).status for form in FORMS]

    assert (made.status, answers) == (201, [200, 200, 200])


def test_times_stored_without_leading_zeros_are_shown() -> None:
    obj = lease("old", "999-01-02T03:04:05.000000Z")

    shown = decode_object(encode_object(obj))

    assert shown["spec"]["renewTime"] == "0999-01-02T03:04:05.000000Z"


def test_an_object_that_cannot_be_shown_is_named() -> None:

    document = (
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"n"},"data":1}'
    )
    with pytest.raises(Internal, match="ConfigMap n/x cannot be shown as protobuf") as caught:
        to_protobuf(document)

    assert isinstance(caught.value.__cause__, MessageError)


def test_every_built_in_kind_has_a_protobuf_form() -> None:
    """StorageVersionMigration v1 had none, and each of its verbs was a 500."""
    missing = {
        (version.api_version, version.kind)
        for serving in builtin_servings(None, "v1")  # type: ignore[arg-type]
        for version in serving.versions.values()
        if not has_message(version.api_version, version.kind)
    }

    assert missing == set()


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_migration_is_written_and_read_as_protobuf(server: LiveServer, version: str) -> None:
    form = FORMS[2]
    path = f"/apis/storagemigration.k8s.io/{version}/storageversionmigrations"
    obj = {
        "apiVersion": f"storagemigration.k8s.io/{version}",
        "kind": "StorageVersionMigration",
        "metadata": {"name": f"m-{version}"},
        "spec": {"resource": {"group": "", "resource": "secrets"}},
    }
    headers = {"Accept": form}
    made = server.request("POST", path, encode_object(obj), content_type=form, headers=headers)
    seen = server.request("GET", f"{path}/m-{version}", headers=headers)
    gone = server.request("DELETE", f"{path}/m-{version}", headers=headers)

    assert (made.status, seen.status, gone.status) == (201, 200, 200), made.text
