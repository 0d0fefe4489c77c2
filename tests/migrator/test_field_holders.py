"""``instar fields remove`` drops no value: a field is counted wherever an object can show it, and
what is written between the count and the removal is found."""

from __future__ import annotations

import pytest

from instar.base.json_values import Object
from instar.wire.client.paths import crd_path
from tests.migrator.running import instar
from tests.migrator.support import (
    crd,
    edit_crd,
    fill,
    lossy_crd,
    name_of,
    objects_path,
    schema,
    with_legacy,
)
from tests.migrator.upstream import Upstream
from tests.support.server import LiveServer
from tests.support.webhook import Webhook, relabel

MERGE = "application/merge-patch+json"
LEGACY = "spec.legacy"


def _set_legacy(server: LiveServer, definition: Object, name: str = "w00000") -> None:
    path = objects_path(definition, "v1beta1", name)
    answer = server.request("PATCH", path, {"spec": {"legacy": "kept"}}, content_type=MERGE)
    assert answer.status == 200, answer.text


def _has_legacy(server: LiveServer, definition: Object, version: str = "v1beta1") -> bool:
    found = server.request("GET", crd_path(name_of(definition))).json
    model = next(item for item in found["spec"]["versions"] if item["name"] == version)
    spec = model["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return "legacy" in spec["properties"]


def _deprecated(server: LiveServer, definition: Object) -> None:
    words = ("deprecate", LEGACY, "--message", "it goes")
    assert instar(server, "fields", name_of(definition), *words).returncode == 0


def test_a_field_of_another_version_than_the_storage_version_is_counted(
    server: LiveServer,
) -> None:
    definition = lossy_crd(server, 4, [1, 3])
    _deprecated(server, definition)

    shown = instar(server, "fields", name_of(definition))
    done = instar(server, "fields", name_of(definition), "remove", LEGACY)

    assert "2 of 4 objects set spec.legacy, all by unknown at v1beta1" in shown.stdout
    assert "can be removed" not in shown.stdout
    assert done.returncode == 1
    assert "cannot be removed yet: 2 of 4 objects set spec.legacy" in done.stderr
    assert "at v1beta1" in done.stderr
    assert with_legacy(server, definition) == 2


def test_a_field_is_counted_at_each_version_if_a_webhook_converts(server: LiveServer) -> None:
    with Webhook() as hook:

        def moved(obj: Object, wanted: str) -> Object:
            """v1 keeps the field of v1beta1 in an annotation."""
            out, spec = relabel(obj, wanted), dict(obj["spec"])
            notes = dict(obj["metadata"].get("annotations") or {})
            if wanted.endswith("/v1") and "legacy" in spec:
                notes["legacy"] = spec.pop("legacy")
            if wanted.endswith("/v1beta1") and "legacy" in notes:
                spec["legacy"] = notes.pop("legacy")
            return {**out, "spec": spec, "metadata": {**out["metadata"], "annotations": notes}}

        hook.convert = moved
        definition = crd(
            schemas={"v1beta1": schema("legacy"), "v1": schema("legacy")},
            conversion=hook.conversion(),
            storage="v1",
        )
        server.create_crd(definition)
        fill(server, definition, 2)
        _set_legacy(server, definition)
        _deprecated(server, definition)

        done = instar(server, "fields", name_of(definition), "remove", LEGACY)

        assert done.returncode == 1
        assert "1 of 2 objects sets spec.legacy" in done.stderr
        assert "at v1beta1" in done.stderr


def test_a_field_that_only_an_unserved_version_has_is_not_removed(server: LiveServer) -> None:
    definition = lossy_crd(server, 3, [0])
    _deprecated(server, definition)

    def unserve(current: Object) -> None:
        for item in current["spec"]["versions"]:
            item["served"] = item["name"] == "v1"

    edit_crd(server, definition, unserve)

    shown = instar(server, "fields", name_of(definition))
    done = instar(server, "fields", name_of(definition), "remove", LEGACY)

    assert "objects that set spec.legacy cannot be counted" in shown.stdout
    assert done.returncode == 1
    assert "v1beta1 cannot be read, because it is not served" in done.stderr
    assert _has_legacy(server, definition)


@pytest.mark.parametrize("late", [False, True])
def test_a_field_that_is_set_while_it_is_removed_is_put_back_at_once(
    cluster: Upstream, late: bool
) -> None:
    definition = crd(schema=schema("legacy"))
    cluster.create_crd(definition)
    fill(cluster, definition, 3)
    _deprecated(cluster, definition)
    edits: list[str] = []

    def another_client(method: str, path: str, answered: bool) -> bool:
        if path == crd_path(name_of(definition)) and answered is late and not edits:
            edits.append(method)
            _set_legacy(cluster, definition)
        return False

    cluster.passing = another_client
    done = instar(cluster, "fields", name_of(definition), "remove", LEGACY, "--settle", "0")

    if late:
        # The field was not in the schema any more, so the server told this client.
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 1
    assert "spec.legacy was put back at once, because 1 object set it" in done.stderr
    assert "default/w00000" in done.stderr
    assert with_legacy(cluster, definition) == 1


def test_a_field_that_nothing_sets_is_removed_while_clients_write_other_fields(
    cluster: Upstream,
) -> None:
    definition = crd(schema=schema("legacy"))
    cluster.create_crd(definition)
    fill(cluster, definition, 2)
    _deprecated(cluster, definition)

    def another_client(method: str, path: str, answered: bool) -> bool:
        if path == crd_path(name_of(definition)) and not answered:
            place = objects_path(definition, "v1", "w00000")
            cluster.request("PATCH", place, {"spec": {"size": 9}}, content_type=MERGE)
        return False

    cluster.passing = another_client
    done = instar(cluster, "fields", name_of(definition), "remove", LEGACY, "--settle", "0")

    assert done.returncode == 0, done.stderr
    assert not _has_legacy(cluster, definition)
