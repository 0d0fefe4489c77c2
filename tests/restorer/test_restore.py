"""``instar history`` and ``instar restore`` against a real server."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from instar.base.json_values import Object
from instar.cli.main import main
from tests.snapshots.worlds import CRD, NAMESPACE, widget, write_snapshot
from tests.support.server import LiveServer, live_server

OBJECTS = "/apis/example.com/v1/namespaces/ns/widgets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server() as running:
        assert running.request("POST", "/api/v1/namespaces", NAMESPACE).status == 201
        yield running


@pytest.fixture(autouse=True)
def crd(server: LiveServer) -> None:
    if server.request("GET", f"{CRDS}/widgets.example.com").status == 404:
        server.create_crd(CRD)


@pytest.fixture
def run(server: LiveServer, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> tuple[int, str, str]:
        code = main([*words, "--kubeconfig", str(server.kubeconfig)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def _make(server: LiveServer, name: str, **spec: Any) -> int:
    answer = server.request("POST", OBJECTS, widget(name, **spec))
    assert answer.status == 201, answer.text
    return int(answer.json["metadata"]["resourceVersion"])


def _get(server: LiveServer, name: str) -> Object:
    found: Object = server.request("GET", f"{OBJECTS}/{name}").json
    return found


def test_a_deleted_object_is_restored_with_a_new_uid(server: LiveServer, run: Run) -> None:
    _make(server, "back", size=1)
    uid = _get(server, "back")["metadata"]["uid"]
    server.request("DELETE", f"{OBJECTS}/back")

    tried = run("restore", "widget", "back", "-n", "ns", "--dry-run")
    absent = _get(server, "back")["kind"]
    code, out, _ = run("restore", "widgets.example.com", "back", "-n", "ns")

    assert tried[:2] == (0, "widgets.example.com 'back' in ns: would be created\n")
    assert absent == "Status"
    assert (code, out) == (0, "widgets.example.com 'back' in ns: created\n")
    assert _get(server, "back")["spec"] == {"size": 1}
    assert _get(server, "back")["metadata"]["uid"] != uid


def test_a_living_object_goes_back_to_a_revision_and_shows_the_difference(
    server: LiveServer, run: Run
) -> None:
    first = _make(server, "again", size=1)
    _resize(server, "again", 2)
    uid = _get(server, "again")["metadata"]["uid"]

    unsaid = run("restore", "widget", "again", "-n", "ns")
    code, out, _ = run("restore", "widget", "again", "-n", "ns", "--at", str(first))

    assert unsaid[0] == 1
    assert "say which state with --at REVISION" in unsaid[2]
    assert code == 0
    assert "-  size: 2\n" in out
    assert "+  size: 1\n" in out
    assert _get(server, "again")["spec"] == {"size": 1}
    assert _get(server, "again")["metadata"]["uid"] == uid


def _resize(server: LiveServer, name: str, size: int) -> None:
    body = {"spec": {"size": size}}
    kind = "application/merge-patch+json"
    assert server.request("PATCH", f"{OBJECTS}/{name}", body, content_type=kind).status == 200


def test_what_a_restore_overwrites_is_kept_and_brings_it_back(
    server: LiveServer, run: Run, tmp_path: Path
) -> None:
    first = _make(server, "kept", size=1)
    _resize(server, "kept", 2)
    before = _get(server, "kept")

    _, out, _ = run("restore", "widget", "kept", "-n", "ns", "--at", str(first))
    [file] = (tmp_path / "state" / "instar" / "restore").iterdir()
    mode = file.stat().st_mode & 0o777
    command = out.splitlines()[-1].partition("instar ")[2]
    code, _, err = run(*shlex.split(command))

    assert "size: 1" in out
    assert mode == 0o600
    assert json.loads(file.read_text()) == before
    assert (code, err) == (0, "")
    assert _get(server, "kept")["spec"] == {"size": 2}


def test_nothing_is_overwritten_that_cannot_be_kept(
    server: LiveServer, run: Run, tmp_path: Path
) -> None:
    first = _make(server, "unkept", size=1)
    _resize(server, "unkept", 2)
    (tmp_path / "state").write_text("no folder")

    code, _, err = run("restore", "widget", "unkept", "-n", "ns", "--at", str(first))

    assert code == 1
    assert "was not written, because its present state cannot be kept" in err
    assert len(err.splitlines()) == 1
    assert _get(server, "unkept")["spec"] == {"size": 2}


def test_a_restore_that_changes_nothing_keeps_no_file(
    server: LiveServer, run: Run, tmp_path: Path
) -> None:
    first = _make(server, "same", size=1)

    code, out, _ = run("restore", "widget", "same", "-n", "ns", "--at", str(first))

    assert (code, out) == (0, "widgets.example.com 'same' in ns: unchanged\n")
    assert not list((tmp_path / "state" / "instar" / "restore").iterdir())


def test_history_tells_every_write_as_a_diff(server: LiveServer, run: Run) -> None:
    first = _make(server, "told", size=1)
    _resize(server, "told", 2)
    server.request("DELETE", f"{OBJECTS}/told")

    code, out, _ = run("history", "widget", "told", "-n", "ns")
    short = run("history", "widget", "told", "-n", "ns", "--no-diff")[1]
    colour = run("history", "widget", "told", "-n", "ns", "--color", "always")[1]
    document = json.loads(run("history", "widget", "told", "-n", "ns", "-o", "json")[1])

    assert code == 0
    assert out.startswith(f"revision {first}  create  ")
    assert "    -  size: 1\n    +  size: 2\n" in out
    assert short.count("\n") == 3
    assert "\x1b[32m+  size: 2\x1b[0m" in colour
    assert [row["operation"] for row in document["revisions"]] == ["create", "update", "delete"]


def test_a_deleted_crd_is_restored_with_its_objects(server: LiveServer, run: Run) -> None:
    for name in ("one", "two"):
        _make(server, name, size=5)
    names = {each["metadata"]["name"] for each in server.request("GET", OBJECTS).json["items"]}
    assert server.request("DELETE", f"{CRDS}/widgets.example.com").status == 200

    tried = run("restore", "crd", "widgets.example.com", "--dry-run")
    code, out, err = run("restore", "crd", "widgets.example.com")

    assert "would come back with it" in tried[1]
    assert (code, err) == (0, "")
    assert out.endswith(f"{len(names)} objects restored\n")
    found = {each["metadata"]["name"] for each in server.request("GET", OBJECTS).json["items"]}
    assert found == names


def test_a_crd_is_restored_from_a_snapshot_without_refused_objects(
    server: LiveServer, run: Run, tmp_path: Path
) -> None:
    lost = widget("lost")
    lost["metadata"]["namespace"] = "nowhere"
    owned = widget("owned", size=7)
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "u"}
    ]
    snapshot = write_snapshot(tmp_path / "world.tar", [owned, lost])
    assert server.request("DELETE", f"{CRDS}/widgets.example.com").status == 200

    code, out, _ = run("restore", "crd", "widgets.example.com", "--from", str(snapshot))

    assert code == 1
    assert "1 object restored\n" in out
    assert "its owner ConfigMap 'gone' is gone or another one: it is not named again" in out
    assert "not restored: widgets.example.com 'lost' in nowhere" in out
    assert "ownerReferences" not in _get(server, "owned")["metadata"]


def test_one_object_is_restored_from_a_snapshot(
    server: LiveServer, run: Run, tmp_path: Path
) -> None:
    snapshot = str(write_snapshot(tmp_path / "world.tar", [widget("single", size=9)]))

    code, _, _ = run("restore", "widget", "single", "-n", "ns", "--from", snapshot)
    missing = run("restore", "widget", "other", "-n", "ns", "--from", snapshot)

    assert code == 0
    assert _get(server, "single")["spec"] == {"size": 9}
    assert "has no widgets.example.com 'other' in ns" in missing[2]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("history", "nothing", "x"), 1, "has no kind 'nothing'"),
        (
            ("history", "widget", "never", "-n", "ns"),
            1,
            "it never existed, or its history is compacted",
        ),
        (("history", "widget", "x", "--limit", "0"), 2, "--limit must be at least 1"),
        (("restore", "widget", "x", "--at", "0"), 2, "--at must be a revision"),
        (("restore", "widget", "x", "-n", "ns", "--at", "99999999"), 1, "is not there yet"),
        (("restore", "widget", "x", "--from", "/nowhere.tar"), 2, "/nowhere.tar"),
    ],
)
def test_bad_input_is_reported_in_one_line(
    run: Run, words: tuple[str, ...], code: int, said: str
) -> None:
    found, out, err = run(*words)

    assert (found, out) == (code, "")
    assert said in err
    assert err.count("\n") == 1


def test_restoring_from_a_partial_snapshot_is_not_a_success(
    server: LiveServer, run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "world"
    folder.mkdir()
    (folder / "crd.json").write_text(json.dumps(CRD))
    (folder / "a.json").write_text(json.dumps(widget("whole", size=1)))
    (folder / "b.json").write_text(json.dumps(widget("half", size=1))[:-20])
    server.request("DELETE", f"{CRDS}/widgets.example.com")

    code, out, _ = run("restore", "crd", "widgets.example.com", "--from", str(folder))
    again, told, _ = run("restore", "crd", "widgets.example.com", "--from", str(folder))

    assert code == 1
    assert "1 object restored\n" in out
    assert "the snapshot is incomplete: " in out
    assert again == 0
    assert "the CRD exists, so its objects are left alone" in told
