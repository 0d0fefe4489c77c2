"""Work on large objects leaves the event loop, segment by segment; that on small ones stays."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from instar.base import limits, offload
from instar.server.lifecycle.lifetime import running
from instar.server.settings import Settings
from tests.support.inside import CRDS, asked, crd, named

ROOT = Path(__file__).resolve().parents[2]
_THINGS = "/apis/example.com/v1/namespaces/default/things"
_MERGE = "application/merge-patch+json"
_APPLY = "application/apply-patch+yaml"
SEGMENTS = {
    "create": {"_decoded", "_take_in_new", "_prepare_new", "_check_new", "encode_for_storage"},
    "replace": {"_decoded", "_take_in", "_prepare", "_validate", "encode_for_storage"},
    "patch": {"patched", "_take_in", "_prepare", "_validate", "encode_for_storage"},
    "apply": {"_advance", "adopt", "_take_in", "_prepare", "_validate", "encode_for_storage"},
    "delete": {"_decode_checked", "_mark"},
}


async def _requests(text: str, seen: dict[str, set[str]], names: set[str]) -> None:
    async with running(Settings(port=0)) as server:
        requests = server.machinery
        assert (await asked(requests, "POST", CRDS, crd("things", "Thing")))[0] == 201
        body = {**named("Thing", "a"), "spec": {"text": text}}
        one = f"{_THINGS}/a"
        steps: list[tuple[str, str, str, Any, dict[str, str]]] = [
            ("create", "POST", _THINGS, body, {}),
            ("replace", "PUT", one, {**named("Thing", "a"), "spec": {"text": text + "1"}}, {}),
            ("patch", "PATCH", one, {"spec": {"more": 1}}, {"content": _MERGE}),
            (
                "apply",
                "PATCH",
                one,
                {**named("Thing", "a"), "spec": {"other": 1}},
                {"content": _APPLY, "fieldManager": "me"},
            ),
            ("delete", "DELETE", one, None, {}),
        ]
        answer: Any = {}
        for name, method, path, sent, more in steps:
            if name == "replace":
                sent["metadata"]["resourceVersion"] = answer["metadata"]["resourceVersion"]
            names.clear()
            status, answer = await asked(requests, method, path, sent, **more)
            assert status in (200, 201), answer
            seen[name] = set(names)


@pytest.fixture
def in_threads(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the functions that ran outside the event loop."""
    names: set[str] = set()
    unchanged = offload.run_in_thread

    async def apart(work: Callable[..., Any], *arguments: Any) -> Any:
        def noted() -> Any:
            assert threading.current_thread() is not threading.main_thread()
            return work(*arguments)

        names.add(getattr(work, "__name__", "?"))
        return await unchanged(noted)

    monkeypatch.setattr(offload, "run_in_thread", apart)
    return names


def test_every_segment_of_a_large_write_runs_in_a_thread(in_threads: set[str]) -> None:
    seen: dict[str, set[str]] = {}

    asyncio.run(_requests("x" * 2 * limits.LOOP_BYTES, seen, in_threads))

    missing = {name: wanted - seen[name] for name, wanted in SEGMENTS.items()}
    assert missing == {name: set() for name in SEGMENTS}


def test_no_segment_of_a_small_write_runs_in_a_thread(in_threads: set[str]) -> None:
    seen: dict[str, set[str]] = {}

    asyncio.run(_requests("x", seen, in_threads))

    # The first object of a version is decoded and judged in a thread, because compiling its schema
    # may take long; every later one stays in the loop.
    assert seen.pop("create") <= {"<lambda>", "_check_new", "_decoded"}
    assert seen == {name: set() for name in SEGMENTS if name != "create"}


def test_only_offload_compares_a_cost_with_the_limit() -> None:
    users = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "instar").rglob("*.py")
        if re.search(r"[<>]=? limits\.LOOP_BYTES|LOOP_BYTES [<>]", file.read_text())
    }

    assert users == {"instar/base/offload.py"}
