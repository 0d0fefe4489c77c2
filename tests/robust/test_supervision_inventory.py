"""Every part that a supervision keeps has a test that makes it fail; those that end by themselves
are made to fail here."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from instar.base.supervision import FAILURES
from instar.server.registry.controllers import crds as crd_controller
from instar.server.registry.controllers.garbage.foreign_owners import PART, ForeignOwnerSearch
from instar.server.registry.controllers.garbage.graph import OwnerGraph
from tests.robust.test_supervision import KEPT
from tests.robust.test_supervision_remote import REMOTE
from tests.support.background import UnexpectedError, in_loop
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
STRUCK = {
    *KEPT,
    *REMOTE,
    "audit-log",  # test_supervision.py: a write that fails
    "watchdog",  # test_supervised_timers.py, and threads in general in test_supervision.py
    *("worker", "lending", "numbers-of-workers"),  # test_supervision_remote.py
    *("crd-warm-up", "elected-controllers", "garbage-collector", PART),  # here
}
RUN_ELSEWHERE = {"quota-charges", "following-authentication", "params.py: name"}
"""Parts of a server at home in a cluster: tests/cluster_home runs them, and makes none fail."""
_MAPS = "/api/v1/namespaces/default/configmaps"


def test_every_part_that_is_kept_is_made_to_fail_by_a_test() -> None:
    found: set[str] = set()
    for file in ROOT.glob("instar/**/*.py"):
        if file.name != "supervision.py":
            found |= _kept_names(file)

    assert found - RUN_ELSEWHERE == STRUCK
    assert found >= RUN_ELSEWHERE, "listed in vain"


def _kept_names(file: Path) -> set[str]:
    """The names of the parts that a module keeps; of one that is made at run time, its variable."""
    tree = ast.parse(file.read_text())
    constants = {
        name.id: value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target, given in [(node.targets[0], node.value)]
        for name, value in (
            zip(target.elts, given.elts, strict=False)
            if isinstance(target, ast.Tuple) and isinstance(given, ast.Tuple)
            else [(target, given)]
        )
        if isinstance(name, ast.Name) and isinstance(value, ast.Constant)
    }
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called, first = node.func, node.args[0]
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        kept = isinstance(called, ast.Attribute) and "upervision" in ast.unparse(called.value)
        if name == "background_task" or (kept and name in ("keep", "keep_thread")):
            if isinstance(first, ast.Constant):
                found.add(str(first.value).replace(" ", "-"))
            elif isinstance(first, ast.Name):
                found.add(str(constants.get(first.id, f"{file.name}: {first.id}")))
    return found


def _failing_once(owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Its first call fails; the list has an entry for each call."""
    real, calls = getattr(owner, name), list[int]()

    async def fail_once(*given: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise UnexpectedError(name)
        return await real(*given)

    monkeypatch.setattr(owner, name, fail_once)
    return calls


def test_the_warm_up_of_crds_that_fails_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crd_controller, "IDLE_SECONDS", 0.0)
    calls = _failing_once(crd_controller, "warm_up", monkeypatch)
    before = FAILURES.value(("crd-warm-up",))

    with live_server():
        eventually(lambda: len(calls) == 2)

    assert FAILURES.value(("crd-warm-up",)) == before + 1


def test_the_garbage_collector_that_fails_to_start_over_looks_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = FAILURES.value(("garbage-collector",))

    with live_server() as server:
        calls = _failing_once(OwnerGraph, "look_at_all", monkeypatch)
        [observer] = [
            kept
            for kept in server.running.machinery.backend.cache._reset_listeners
            if isinstance(getattr(kept, "__self__", None), OwnerGraph)
        ]
        in_loop(server, observer)  # as after the store was read again
        owner = server.request("POST", _MAPS, {"metadata": {"name": "owner"}}).json
        server.request("POST", _MAPS, {"metadata": _owned(owner, "owned")})
        server.request("DELETE", f"{_MAPS}/owner")

        eventually(lambda: len(calls) == 2)
        eventually(lambda: server.request("GET", f"{_MAPS}/owned").status == 404)
    assert FAILURES.value(("garbage-collector",)) == before + 1


def test_the_search_for_owners_elsewhere_goes_on_with_the_next_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = _failing_once(ForeignOwnerSearch, "_look_through", monkeypatch)
    before = FAILURES.value((PART,))

    with live_server() as server:
        server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})
        place = "/api/v1/namespaces/elsewhere/configmaps"
        owner = server.request("POST", place, {"metadata": {"name": "owner"}}).json

        for name in ("first", "second"):
            server.request("POST", _MAPS, {"metadata": _owned(owner, name)})
            eventually(lambda: calls)
        eventually(lambda: FAILURES.value((PART,)) == before + 1)
        server.request("POST", _MAPS, {"metadata": _owned(owner, "third")})

        eventually(lambda: len(calls) > 1)


def test_controllers_that_fail_to_begin_when_elected_begin_again() -> None:
    calls: list[int] = []

    async def begin() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise UnexpectedError

    before = FAILURES.value(("elected-controllers",))
    with live_server() as server:
        led = server.running.machinery.controllers.leadership
        led._elected.append(begin)
        _elect(server)

        eventually(lambda: len(calls) == 2)
    assert FAILURES.value(("elected-controllers",)) == before + 1


def _elect(server: LiveServer) -> None:
    led = server.running.machinery.controllers.leadership
    kept: list[Any] = []
    in_loop(server, lambda: kept.append(server.loop.create_task(led._begin_to_lead())))
    eventually(lambda: kept[0].done())


def _owned(owner: Any, name: str) -> Any:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}
    return {
        "name": name,
        "ownerReferences": [{**reference, "uid": owner["metadata"]["uid"]}],
    }
