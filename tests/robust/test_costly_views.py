"""What an object costs to show, in tables, protobuf and partial metadata, holds the event loop no
longer than what it costs to write, in lists and in watches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from instar.base import limits
from instar.kube.access.rbac.authorizer import MOST_RULES
from instar.kube.api.jsonpath import compile_path
from instar.kube.api.jsonpath_steps import MOST_LIST_WORK, MOST_WORK, ROW_WORK, Work
from instar.kube.apply.conflicts import ApplyConflict
from instar.kube.apply.managed_fields import ManagerKey
from instar.server.registry.stored.codec import Codec
from instar.server.registry.verbs.watch_events import EventRenderer
from instar.server.rest import watch_stream
from tests.support import crds
from tests.support.background import in_loop
from tests.support.server import LiveServer, live_server

_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
_PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_MAPS = "/api/v1/namespaces/default/configmaps"
_GROUP = "views.example.com"
_COLS = f"/apis/{_GROUP}/v1/namespaces/default/cols"
_COLUMNS = 40


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(authorization="RBAC") as running:
        columns = [
            {
                "name": f"c{number}",
                "type": "string",
                "jsonPath": f".spec.a[*].b[?(@.c=='x{number}')].c",
            }
            for number in range(_COLUMNS)
        ]
        schema = crds.fields(spec={"type": "object", "x-kubernetes-preserve-unknown-fields": True})
        version = crds.version("v1", schema, additionalPrinterColumns=columns)
        running.create_crd(crds.crd(version, group=_GROUP, plural="cols", kind="Col"))
        spec = {"a": [{"b": [{"c": "y"}] * 30}] * 200}
        obj = {"apiVersion": f"{_GROUP}/v1", "kind": "Col", "metadata": {"name": "a"}, "spec": spec}
        assert len(orjson.dumps(obj)) > limits.LOOP_BYTES
        small = {**obj, "metadata": {"name": "b"}, "spec": {"a": [{"b": [{"c": "y"}] * 8}] * 60}}
        assert len(orjson.dumps(small)) < limits.LOOP_BYTES
        assert running.request("POST", _COLS, obj).status == 201
        assert running.request("POST", _COLS, small).status == 201
        data = {f"k{number}": "x" for number in range(5000)}
        assert (
            running.request("POST", _MAPS, {"metadata": {"name": "large"}, "data": data}).status
            == 201
        )
        yield running


def _renderers() -> list[type]:
    return [
        kept
        for kept in vars(watch_stream).values()
        if isinstance(kept, type) and issubclass(kept, EventRenderer) and kept is not EventRenderer
    ]


@pytest.mark.parametrize(
    ("accept", "path"),
    [(_TABLE, _MAPS), (_PARTIAL, _MAPS), (_PROTOBUF, _MAPS), (_TABLE, _COLS)],
)
def test_a_watch_encodes_what_is_large_or_costly_in_a_thread(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch, accept: str, path: str
) -> None:
    threads: list[tuple[int, bool]] = []
    for renderer in _renderers():
        _watched(renderer, threads, monkeypatch)

    name = "large" if path == _MAPS else "b"
    query = f"?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3D{name}"
    answer = server.request("GET", path + query, headers={"Accept": accept})

    assert answer.status == 200
    in_the_loop: list[int] = []
    in_loop(server, lambda: in_the_loop.append(threading.get_ident()))
    whole = [thread for thread, succeeded in threads if succeeded]
    assert whole
    assert in_the_loop[0] not in whole


def _watched(
    renderer: type, threads: list[tuple[int, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    call: Any = renderer.__call__

    def watched(self: Any, type_: str, view: bytes) -> bytes:
        succeeded = False
        try:
            made: bytes = call(self, type_, view)
            succeeded = type_ != "BOOKMARK"
        finally:
            threads.append((threading.get_ident(), succeeded))
        return made

    monkeypatch.setattr(renderer, "__call__", watched)


@pytest.mark.parametrize("name", ["", "/a", "/b"])
def test_costly_columns_do_not_hold_the_loop(server: LiveServer, name: str) -> None:
    watchdog = server.running.machinery.watchdog
    watchdog.held.clear()

    assert server.request("GET", _COLS + name, headers={"Accept": _TABLE}).status == 200

    assert not watchdog.held


def test_the_cells_of_a_row_share_one_budget_and_rows_of_a_list_another() -> None:
    find, wide = compile_path(".a[*].b"), {"a": [{"b": 1}] * (MOST_WORK // 4)}
    work, spent = Work(), 0
    counted: list[int] = []
    done = Work.done

    class Counting(Work):
        def done(self, amount: int) -> None:
            counted.append(amount)
            done(self, amount)

    work = Counting()
    rows = []
    for _ in range(3 * MOST_LIST_WORK // MOST_WORK):
        work.next_row()
        before = sum(counted)
        cells = [find(wide, work) for _ in range(8)]
        spent = sum(counted) - before
        rows.append(sum(bool(cell) for cell in cells))
        assert spent < 2 * MOST_WORK

    assert 0 < rows[0] < 8
    assert rows[-1] == 0
    assert sum(counted) < 2 * MOST_LIST_WORK
    work.next_row()
    assert find({"a": [{"b": 1}] * (ROW_WORK // 10)}, work)  # each row has a little of its own


def test_an_apply_conflict_names_a_bounded_number_of_fields() -> None:
    owner = ManagerKey("m" * 100, "Update", "v1", "")
    fields: Any = {f"f:k{number}": {} for number in range(20_000)}

    refused = ApplyConflict({owner: fields})

    told = orjson.dumps(refused.to_status())
    assert len(told) < 2 * limits.MAX_REFUSAL
    assert refused.message.startswith("Apply failed with 20000 conflicts: ")
    assert refused.message.endswith("and there are more conflicts")
    assert len((refused.details or {})["causes"]) <= limits.MAX_ERRORS_TOLD


@pytest.fixture
def grown(server: LiveServer) -> Iterator[str]:
    """A collection of small objects that a new default made large, field selectors included."""
    path = f"/apis/{_GROUP}/v1/namespaces/default/lates"
    member: dict[str, Any] = {"type": "string"}
    items = {"type": "object", "properties": {"a": member}}
    kept: dict[str, Any] = {"type": "string"}
    spec = crds.fields(list={"type": "array", "items": items}, kept=kept)
    schema = crds.fields(spec=spec)
    version = crds.version("v1", schema, selectableFields=[{"jsonPath": ".spec.kept"}])
    crd = crds.crd(version, group=_GROUP, plural="lates", kind="Late")
    server.create_crd(crd)
    for number in range(12):
        obj: dict[str, Any] = {"apiVersion": f"{_GROUP}/v1", "kind": "Late"}
        obj |= {"metadata": {"name": f"l{number}"}, "spec": {"list": [{}] * 2500, "kept": "k"}}
        assert server.request("POST", path, obj).status == 201
    member["default"] = "y" * 2500
    merge, crds_path = "application/merge-patch+json", "/apis/apiextensions.k8s.io/v1"
    where = f"{crds_path}/customresourcedefinitions/lates.{_GROUP}"
    assert server.request("PATCH", where, crd, content_type=merge).status == 200
    yield path
    server.request("DELETE", where)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "/l1",
        "?fieldSelector=spec.kept%3Dk&limit=1",
        "?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dl1",
        "?watch=1&timeoutSeconds=1&fieldSelector=spec.kept%3Dother",
    ],
)
def test_what_a_new_default_makes_large_is_made_in_a_thread(
    server: LiveServer, grown: str, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []
    normalised = Codec._normalised

    def watched(self: Codec, entry: Any, stored: Any) -> bytes:
        view = normalised(self, entry, stored)
        threads.append(threading.get_ident())
        return view

    monkeypatch.setattr(Codec, "_normalised", watched)

    assert server.request("GET", grown + query).status == 200

    in_the_loop: list[int] = []
    in_loop(server, lambda: in_the_loop.append(threading.get_ident()))
    assert threads
    assert in_the_loop[0] not in threads


def test_a_review_of_rules_lists_a_bounded_number(server: LiveServer) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1"
    rule = {"apiGroups": ["g.io"], "verbs": ["get"]}
    rules = [{**rule, "resources": [f"r{number}"]} for number in range(MOST_RULES + 5)]
    server.request("POST", f"{roles}/clusterroles", {"metadata": {"name": "wide"}, "rules": rules})
    subject = {"kind": "User", "name": "wide", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": "wide", "apiGroup": "rbac.authorization.k8s.io"}
    bound = {"metadata": {"name": "wide"}, "roleRef": role, "subjects": [subject]}
    assert server.request("POST", f"{roles}/clusterrolebindings", bound).status == 201

    told = server.request(
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
        {"spec": {"namespace": "default"}},
        headers={"Impersonate-User": "wide"},
    ).json["status"]

    assert len(told["resourceRules"]) <= MOST_RULES
    assert told["incomplete"]
    assert "more than" in told["evaluationError"]
