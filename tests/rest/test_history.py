"""``/instar/history``: the past of an object, for whoever may get the object."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from instar.base import limits
from instar.base.json_values import Object
from instar.tools.testing.api_server import Answer
from tests.snapshots.worlds import CRD, NAMESPACE
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

OBJECTS = "/apis/example.com/v1/namespaces/ns/widgets"
PAST = f"/instar/history{OBJECTS}"


@pytest.fixture(scope="module")
def token_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokens") / "tokens.csv"
    path.write_text("reader-token,reader,reader-id\nstranger-token,stranger,stranger-id\n")
    return path


@pytest.fixture(scope="module")
def server(token_file: Path) -> Iterator[LiveServer]:
    with live_server(token_file=token_file) as running:
        running.create_crd(CRD)
        assert running.request("POST", "/api/v1/namespaces", NAMESPACE).status == 201
        yield running


def _widget(name: str, size: int) -> Object:
    head = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}}
    return {**head, "spec": {"size": size}}


def _written(server: LiveServer, name: str) -> list[int]:
    """Created, changed twice, deleted: the revisions."""
    made = server.request("POST", f"{OBJECTS}?fieldManager=maker", _widget(name, 1))
    found = [made]
    for size in (2, 3):
        body = {"spec": {"size": size}}
        kind = "application/merge-patch+json"
        path = f"{OBJECTS}/{name}?fieldManager=changer"
        found.append(server.request("PATCH", path, body, content_type=kind))
    assert server.request("DELETE", f"{OBJECTS}/{name}").status == 200
    return [int(each.json["metadata"]["resourceVersion"]) for each in found]


def test_history_lists_writes_with_manager_and_changes(server: LiveServer) -> None:
    first, second, third = _written(server, "told")

    told = server.request("GET", f"{PAST}/told").json
    few = server.request("GET", f"{PAST}/told?limit=2").json
    older = server.request("GET", f"{PAST}/told?before={third}").json

    rows = told["revisions"]
    assert [row["operation"] for row in rows] == ["create", "update", "update", "delete"]
    assert [row["revision"] for row in rows[:3]] == [first, second, third]
    assert [row["managers"][0]["manager"] for row in rows[:2]] == ["maker", "changer"]
    assert rows[1]["changes"] == ["spec.size"]
    assert {row.get("storedVersion") for row in rows[:3]} == {"v1"}
    assert [row["operation"] for row in few["revisions"]] == ["update", "delete"]
    assert few["revisions"][0]["changes"] == ["spec.size"]
    assert (told["more"], few["more"]) == (False, True)
    assert [row["revision"] for row in older["revisions"]] == [first, second]


def test_an_object_is_shown_as_it_was_at_the_version_asked_for(server: LiveServer) -> None:
    first, second, _ = _written(server, "shown")
    beta = PAST.replace("/v1/", "/v1beta1/", 1)

    then = server.request("GET", f"{PAST}/shown?at={first}").json
    between = server.request("GET", f"{beta}/shown?at={second}").json

    assert (then["spec"]["size"], then["metadata"]["resourceVersion"]) == (1, str(first))
    assert (between["apiVersion"], between["spec"]["size"]) == ("example.com/v1beta1", 2)


def test_revisions_without_the_object_are_404(server: LiveServer) -> None:
    first, *_ = _written(server, "absent")
    current = server.request("GET", f"{PAST}/absent").json["current"]

    def asked(words: str) -> Answer:
        return server.request("GET", f"{PAST}/{words}")

    assert asked(f"absent?at={first - 1}").status == 404
    assert asked(f"absent?at={current}").status == 404
    assert asked("never").status == 404
    assert asked(f"absent?at={current + 1000}").status == 504
    assert asked("absent?at=0").status == 400
    assert asked("absent?at=x").status == 400
    assert asked("absent?limit=-1").status == 400
    assert asked("absent?before=" + "9" * 30).status == 400


def test_history_needs_permission_to_get_the_object(server: LiveServer) -> None:
    first, *_ = _written(server, "guarded")
    rules = [{"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get"]}]
    role = {"metadata": {"name": "reader"}, "rules": rules}
    binding = {
        "metadata": {"name": "reader"},
        "subjects": [{"kind": "User", "name": "reader"}],
        "roleRef": {"kind": "Role", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"},
    }
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/ns"
    assert server.request("POST", f"{rbac}/roles", role).status == 201
    assert server.request("POST", f"{rbac}/rolebindings", binding).status == 201

    for path in (f"{PAST}/guarded", f"{PAST}/guarded?at={first}"):
        assert server.request("GET", path, token="reader-token").status == 200
        assert server.request("GET", path, token="stranger-token").status == 403
        assert server.request("GET", path, token=None).status in (401, 403)


def _make_namespace(server: LiveServer, name: str, owner: str) -> None:
    rules = [{"apiGroups": [""], "resources": ["secrets", "namespaces"], "verbs": ["get"]}]
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": "owner"},
        "subjects": [{"kind": "User", "name": owner}],
        "roleRef": {"kind": "Role", "name": "owner", "apiGroup": group},
    }
    rbac = f"/apis/{group}/v1/namespaces/{name}"
    made = [
        server.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}}),
        server.request("POST", f"{rbac}/roles", {"metadata": {"name": "owner"}, "rules": rules}),
        server.request("POST", f"{rbac}/rolebindings", binding),
    ]
    assert [each.status for each in made] == [201, 201, 201]


def test_the_next_owner_of_a_namespace_sees_nothing_of_the_one_before(server: LiveServer) -> None:
    _make_namespace(server, "team", "stranger")
    secrets, past = "/api/v1/namespaces/team/secrets", "/instar/history/api/v1/namespaces/team"
    old = server.request("POST", secrets, {"metadata": {"name": "db"}, "stringData": {"p": "old"}})
    revision = old.json["metadata"]["resourceVersion"]
    server.request("DELETE", "/api/v1/namespaces/team")
    eventually(lambda: server.request("GET", "/api/v1/namespaces/team").status == 404 or None)
    _make_namespace(server, "team", "reader")

    paths = (f"{past}/secrets/db", f"{past}/secrets/db?at={revision}", f"{past}?at={revision}")
    before = [server.request("GET", path, token="reader-token").status for path in paths]
    new = server.request("POST", secrets, {"metadata": {"name": "db"}, "stringData": {"p": "new"}})
    own = server.request("GET", f"{past}/secrets/db", token="reader-token").json
    whole = server.request("GET", f"{past}/secrets/db").json

    assert before == [404, 404, 404]
    assert [row["operation"] for row in own["revisions"]] == ["create"]
    assert str(own["revisions"][0]["revision"]) == new.json["metadata"]["resourceVersion"]
    assert own["more"] is False
    assert [row["operation"] for row in whole["revisions"]] == ["create", "delete", "create"]
    assert server.request("GET", f"{past}/secrets/db?at={revision}").status == 200


def test_the_history_of_large_objects_is_paged(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = _written(server, "large")
    monkeypatch.setattr(limits, "HISTORY_READ_AT_ONCE", 1)

    newest = server.request("GET", f"{PAST}/large").json
    older = server.request("GET", f"{PAST}/large?before={third + 1}").json
    oldest = server.request("GET", f"{PAST}/large?before={third}").json

    assert [row["operation"] for row in newest["revisions"]] == ["delete"]
    assert [row["revision"] for row in older["revisions"]] == [third]
    assert older["revisions"][0]["changes"] == ["spec.size"]
    assert [row["revision"] for row in oldest["revisions"]] == [first, second]
    assert [each["more"] for each in (newest, older, oldest)] == [True, True, False]


def test_the_past_is_read_only_and_of_single_objects(server: LiveServer) -> None:
    assert server.request("DELETE", f"{PAST}/x").status == 405
    assert server.request("POST", PAST, _widget("x", 1)).status == 405
    assert server.request("GET", PAST).status == 405
    assert server.request("GET", f"{PAST}/x/status").status == 405
    assert server.request("GET", "/instar/history").status == 404
    assert server.request("GET", "/instar/history/apis/none.example.com/v1/x/y").status == 404


def test_built_in_objects_have_a_past_too(server: LiveServer) -> None:
    body = {"metadata": {"name": "settings"}, "data": {"a": "1"}}
    path = "/api/v1/namespaces/ns/configmaps"
    made = server.request("POST", path, body).json["metadata"]["resourceVersion"]
    server.request("PUT", f"{path}/settings", {**body, "data": {"a": "2"}})

    then = server.request("GET", f"/instar/history{path}/settings?at={made}").json

    assert then["data"] == {"a": "1"}


def test_compacted_history_is_410(token_file: Path) -> None:
    with live_server() as server:
        server.create_crd(CRD)
        server.request("POST", "/api/v1/namespaces", NAMESPACE)
        first, _, third = _written(server, "old")
        store = server.running.machinery.backend.store
        asyncio.run_coroutine_threadsafe(store.compact(third), server.loop).result(10)

        gone = server.request("GET", f"{PAST}/old?at={first}")
        told = server.request("GET", f"{PAST}/old").json

    assert gone.status == 410
    assert [row["operation"] for row in told["revisions"]] == ["earliest", "delete"]
