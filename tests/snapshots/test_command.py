"""``instar snapshot`` as people call it, against a real server and real stores."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from instar.cli.main import main
from instar.server.settings import EncryptionSettings
from instar.tools.snapshots.sources import open_captured_cluster
from instar.tools.testing.api_server import Server, server
from tests.snapshots.worlds import CRD, NAMESPACE, widget, write_snapshot

NAME = "widgets.example.com"


def fill(running: Server) -> None:
    running.install(CRD, NAMESPACE)
    for number in range(3):
        version = "v1" if number else "v1beta1"
        obj = widget(f"w{number}", version, owner=f"user-{number}")
        del obj["metadata"]["uid"]
        path = f"/apis/example.com/{version}/namespaces/ns/widgets"
        assert running.request("POST", path, obj).status == 201


def listed(running: Server) -> list[Any]:
    items: list[Any] = running.request("GET", "/apis/example.com/v1/widgets").json["items"]
    return items


def test_a_cluster_becomes_a_file_and_a_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "s.tar.gz"
    with server() as running:
        fill(running)
        monkeypatch.setenv("KUBECONFIG", str(running.kubeconfig))

        code = main(["snapshot", NAME, "-o", str(target), "--with", "rbac"])
        again = main(["snapshot", "-o", str(target)])
        expected = listed(running)
        with open_captured_cluster(f"kube:{NAME}") as live:
            copied = list(live.objects(NAME))

    said = capsys.readouterr()
    assert (code, again) == (0, 1)
    assert "1 CRD with 3 objects" in said.out
    assert "--force replaces it" in said.err
    with open_captured_cluster(str(target)) as world:
        assert list(world.objects(NAME)) == expected == copied
        assert {use.version for use in world.usage()} == {"v1", "v1beta1"}
        kinds = {obj["kind"] for obj in world.other_objects()}
    assert {"Namespace", "ClusterRole", "ClusterRoleBinding"} <= kinds
    assert target.stat().st_mode & 0o777 == 0o600


def test_an_encrypted_store_is_taken_exactly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = base64.b64encode(b"k" * 32).decode()
    config = tmp_path / "encryption.yaml"
    config.write_text(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n"
        "- resources: ['*.*']\n  providers:\n"
        f"  - secretbox: {{keys: [{{name: one, secret: {key}}}]}}\n"
    )
    storage = f"sqlite:{tmp_path / 'a.db'}"
    with server(storage=storage, encryption=EncryptionSettings(config=config)) as running:
        fill(running)
        expected = listed(running)

    opened = ["--encryption-provider-config", str(config), "-o", str(tmp_path / "opened.tgz")]
    shut = main(["snapshot", "--storage", storage, "-o", str(tmp_path / "shut.tgz")])
    said = capsys.readouterr()
    code = main(["snapshot", "--storage", storage, *opened, "--json"])

    manifest = json.loads(capsys.readouterr().out)
    assert (code, shut) == (0, 1)
    assert "customresourcedefinitions.apiextensions.k8s.io: 1 object could not be read" in said.err
    assert manifest["exact"] is True
    with open_captured_cluster(str(tmp_path / "opened.tgz")) as world:
        assert list(world.objects(NAME)) == expected


def test_a_snapshot_of_files_does_not_claim_to_know_how_they_are_stored(tmp_path: Path) -> None:
    given = tmp_path / "all.json"
    given.write_text(json.dumps({"kind": "List", "items": [CRD, widget("a")]}))

    code = main(["snapshot", "--from", str(given), "-o", str(tmp_path / "s.tgz")])

    assert code == 0
    with open_captured_cluster(str(tmp_path / "s.tgz")) as world:
        assert not world.exact
        assert len(list(world.objects(NAME))) == 1


def test_a_bundle_becomes_a_redacted_snapshot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = tmp_path / "all.json"
    items = [CRD, *(widget(f"w{number}", owner="alice") for number in range(3))]
    given.write_text(json.dumps({"kind": "List", "items": items}))
    target = tmp_path / "s.tar.gz"

    code = main(
        ["snapshot", "--from", str(given), "-o", str(target), "--redact", f"{NAME}=spec.owner"]
    )

    assert code == 0, capsys.readouterr().err
    with open_captured_cluster(str(target)) as world:
        owners = {obj["spec"]["owner"] for obj in world.objects(NAME)}
    assert len(owners) == 1
    assert "alice" not in owners


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--redact", "spec..x"], 2),
        (["--with", "nonsense"], 2),
        (["--page", "0"], 2),
        (["--storage", "sqlite:x", "--from", "y"], 2),
        (["--resume", "--force"], 2),
        (["--storage", "sqlite:nowhere.db"], 1),
        (["--from", "nowhere"], 2),
        (["--kubeconfig", "nowhere"], 2),
        (["--resume", "--from", "all.json"], 2),
        (["--redact-key", "short.key"], 1),
        (["nosuch.example.com", "--from", "all.json"], 2),
    ],
)
def test_a_wrong_call_is_one_line_and_leaves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "all.json").write_text(json.dumps(CRD))
    (tmp_path / "short.key").write_text("x")
    before = sorted(tmp_path.iterdir())

    assert main(["snapshot", *words]) == code

    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_serve_reports_a_bad_source_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--listen", "127.0.0.1:0", "--from", str(tmp_path / "nowhere")]) == 2

    assert capsys.readouterr().err.count("\n") == 1


def test_a_snapshot_of_half_a_snapshot_is_not_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = write_snapshot(tmp_path / "whole.tar", [widget(f"w{each}") for each in range(20)])
    half = tmp_path / "half.tar"
    half.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    again = tmp_path / "again.tar.gz"

    code = main(["snapshot", "--from", str(half), "-o", str(again)])

    assert code == 1
    assert "; not complete" in capsys.readouterr().out
    with open_captured_cluster(str(again)) as world:
        assert any("the file is not whole" in text for text in world.problems)
