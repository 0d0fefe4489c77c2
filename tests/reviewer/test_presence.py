"""CRDs that only one side has are findings, with an exit code, in every output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from instar.base.json_values import Object, copy_json
from instar.cli.main import main
from instar.tools.reviewer.sources import whole_cluster
from tests.reviewer.widget import widget
from tests.support.server import LiveServer

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "instar.toml").write_text("[review]\n")


def other(plural: str = "gadgets", **spec: object) -> Object:
    crd: Object = copy_json(widget())
    crd["metadata"]["name"] = f"{plural}.example.com"
    crd["spec"]["names"] = {"plural": plural, "kind": plural.title()}
    crd["spec"] |= spec
    return crd


def write(path: Path, *crds: Object) -> str:
    path.write_text(yaml.safe_dump_all(crds, sort_keys=False))
    return str(path)


@pytest.mark.parametrize("output", ["sarif", "github", "junit", "json", "text"])
def test_a_crd_that_went_is_an_error_in_every_output(
    tmp_path: Path, capsys: Capture, output: str
) -> None:
    old = write(tmp_path / "old.yaml", widget(), other())
    new = write(tmp_path / "new.yaml", widget())

    assert main(["review", old, new, "-o", output]) == 1
    assert "crd-removed" in capsys.readouterr().out


def test_a_new_crd_the_server_would_refuse_is_an_error(tmp_path: Path, capsys: Capture) -> None:
    old = write(tmp_path / "old.yaml", widget())
    new = write(tmp_path / "new.yaml", widget(), other(scope="Nowhere"))

    assert main(["review", old, new]) == 1
    assert "crd-refused" in capsys.readouterr().out


def test_a_sound_new_crd_is_not_a_finding(tmp_path: Path) -> None:
    old = write(tmp_path / "old.yaml", widget())
    new = write(tmp_path / "new.yaml", widget(), other())

    assert main(["review", old, new]) == 0


def test_a_presence_finding_can_be_suppressed(tmp_path: Path) -> None:
    old = write(tmp_path / "old.yaml", widget(), other())
    new = write(tmp_path / "new.yaml", widget())
    (tmp_path / "instar.toml").write_text('[review.severity]\ncrd-removed = "off"\n')

    assert main(["review", old, new]) == 0


def test_only_crds_in_the_folder_are_compared_with_a_cluster(
    server: LiveServer, tmp_path: Path, capsys: Capture
) -> None:
    crd = other("gizmos", group="presence.example.com")
    crd["metadata"]["name"] = "gizmos.presence.example.com"
    server.create_crd(copy_json(crd))
    another = copy_json(crd)
    another["metadata"]["name"] = "trinkets.presence.example.com"
    another["spec"]["names"] = {"plural": "trinkets", "kind": "Trinket"}
    server.create_crd(another)
    folder = tmp_path / "crds"
    folder.mkdir()
    new = write(folder / "one.yaml", crd)
    words = ["review", "kube:", new, "--kubeconfig", str(server.kubeconfig)]

    assert main([*words, "-o", "json"]) == 0
    compared = json.loads(capsys.readouterr().out)
    assert main([*words, "--removed", "-o", "json"]) == 1
    told = json.loads(capsys.readouterr().out)

    assert [item["name"] for item in compared["crds"]] == ["gizmos.presence.example.com"]
    removed = [c["name"] for c in told["crds"] for f in c["findings"] if f["rule"] == "crd-removed"]
    assert "trinkets.presence.example.com" in removed


@pytest.mark.parametrize(
    ("source", "whole"),
    [
        ("kube:", True),
        ("kube://", True),
        ("kube:?context=a", True),
        ("kube:x", False),
        ("d", False),
    ],
)
def test_which_sources_are_a_whole_cluster(source: str, whole: bool) -> None:
    assert whole_cluster(source) is whole


def test_both_forms_of_one_crd_in_one_folder_are_one_crd(tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "crds"
    folder.mkdir()
    crd = widget()
    write(folder / "v1.yaml", crd)
    beta = {**copy_json(crd), "apiVersion": "apiextensions.k8s.io/v1beta1"}
    spec = beta["spec"]
    spec["version"] = spec["versions"][0]["name"]
    write(folder / "v1beta1.yaml", beta)
    old = write(tmp_path / "old.yaml", crd)

    assert main(["review", old, str(folder)]) == 0
    assert "a second time" not in capsys.readouterr().err
