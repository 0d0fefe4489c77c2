"""Strategic merge patches a real server was sent, and what became of the objects."""

from __future__ import annotations

from typing import Any

import pytest

from instar.base.errors import ApiError
from instar.base.json_values import copy_json
from instar.kube.facts.types import schema_of
from instar.kube.patches.strategic_patch import strategic_merge
from tests.support.builtins import Line, needs_builtins, recorded

ONLY = "(only)"
OWN = ("generation", "resourceVersion", "managedFields")
"""What the server sets itself in the metadata."""
PARTS = ("status", "ephemeralcontainers", "resize", "binding", "finalize", "eviction", "token")
DEFAULTED_AGAIN = {"replicas"}
NOT_OF_THE_MERGE = {
    "smp.pod.06.status.ignoresSpec": "a write to the status leaves the spec alone",
    "smp.pod.07.main.ignoresStatus": "a write to the object leaves the status alone",
}


def lines() -> list[Line]:
    return [param.values[0] for param in recorded("patch") if param.values[0]]


def is_strategic(line: Line) -> bool:
    return "strategic" in (line.get("contentType") or "")


def key_of(line: Line) -> str:
    """Subresources are parts of their object; a Scale is one of its own."""
    path = str(line["path"]).partition("?")[0]
    if line["method"] == "POST" and isinstance(line["body"], dict):
        return f"{path}/{line['body'].get('metadata', {}).get('name')}"
    head, _, last = path.rpartition("/")
    return head if last in PARTS else path


def at(value: Any, path: str) -> Any:
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def put(obj: dict[str, Any], path: str, value: Any) -> None:
    *above, last = path.split(".")
    for step in above:
        obj = obj.setdefault(step, {})
    if value is None:
        obj.pop(last, None)
    else:
        obj[last] = value


def follow(known: dict[str, dict[str, Any]], line: Line) -> None:
    """Keep what the answer tells about the object."""
    answer = line["answer"]
    if line["status"] >= 300 or not isinstance(answer, dict):
        return
    if ONLY not in answer:
        if answer.get("kind") != "Status":
            known[key_of(line)] = copy_json(answer)
        return
    obj = known.setdefault(key_of(line), copy_json(line["body"]))
    for path in answer[ONLY]:
        put(obj, path, copy_json(at(answer, path)))


def steps() -> list[Any]:
    """Each strategic patch with the object as it was before it."""
    known: dict[str, dict[str, Any]] = {}
    found = []
    for line in lines():
        before = known.get(key_of(line))
        if is_strategic(line) and line["status"] < 300 and before is not None:
            found.append(pytest.param(line, copy_json(before), id=line["id"]))
        follow(known, line)
    return found or [pytest.param({}, {}, marks=needs_builtins)]


def missing(ours: Any, theirs: Any, before: Any, path: str) -> list[str]:
    """Where the server's object has not what ours has, or has kept what ours dropped.

    What the server adds by default is not in the patch's hands.
    """
    if is_nothing(ours):
        kept = theirs == before and path.rpartition(".")[2] not in DEFAULTED_AGAIN
        return [f"{path} was to go"] if kept and not is_nothing(theirs) else []
    if isinstance(ours, dict) and isinstance(theirs, dict):
        old = before if isinstance(before, dict) else {}
        return [
            problem
            for name in ours | theirs
            if not (path == "metadata" and name in OWN)
            for problem in missing(
                ours.get(name), theirs.get(name), old.get(name), f"{path}.{name}"
            )
        ]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [
            problem
            for position, (mine, other) in enumerate(zip(ours, theirs, strict=True))
            for problem in missing(mine, other, None, f"{path}[{position}]")
        ]
    return [] if ours == theirs else [f"{path}: {ours} is not {theirs}"]


def is_nothing(value: Any) -> bool:
    """Absent, null and empty are the same in Go's JSON."""
    return value is None or value in ({}, [])


@pytest.mark.parametrize(("line", "before"), steps())
def test_a_recorded_patch_gives_the_recorded_object(line: Line, before: dict[str, Any]) -> None:
    schema = schema_of(before["apiVersion"], before["kind"])
    assert schema is not None
    kept = copy_json(before)

    merged = strategic_merge(before, line["body"], schema)

    assert before == kept
    answer = line["answer"]
    told = answer.get(ONLY, ("metadata", "spec", "status", "secrets", "imagePullSecrets"))
    if line["id"] in NOT_OF_THE_MERGE:
        told = ["metadata.labels"]
    found = [
        problem
        for path in told
        if not (path.startswith("metadata.") and path.endswith(OWN))
        for problem in missing(at(merged, path), at(answer, path), at(kept, path), path)
    ]
    assert found == []


def refused(line: Line) -> bool:
    return is_strategic(line) and line["status"] == 500


@pytest.mark.parametrize("line", recorded("patch", refused))
def test_a_recorded_refusal(line: Line) -> None:
    schema = schema_of("apps/v1", "Deployment")
    assert schema is not None
    containers = [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:1"}]
    before = {"spec": {"template": {"spec": {"containers": containers}}}}
    with pytest.raises(ApiError) as caught:
        strategic_merge(before, line["body"], schema)
    assert caught.value.message == line["answer"]["message"]
    assert (caught.value.code, caught.value.reason) == (500, "")
