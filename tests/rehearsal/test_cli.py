"""``instar rehearse`` as it is called: exit codes, several forms, one line for bad input."""

from __future__ import annotations

import json
import shlex
import socket
import sys
from pathlib import Path

import pytest
import trustme
import yaml

from instar.cli.main import main
from tests.rehearsal.planted.cases import COLOURED, OLD
from tests.rehearsal.worlds import crd, version, widget
from tests.snapshots.worlds import CRD, write_snapshot
from tests.snapshots.worlds import widget as snapshot_widget
from tests.storage.etcd_server import free_ports

HOSTPORT = Path(__file__).parents[2] / "examples" / "hostport"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    before = tmp_path / "before"
    before.mkdir()
    (before / "crd.yaml").write_text(yaml.safe_dump(OLD))
    objects = [widget(each, "v1beta1", {"size": each}) for each in range(2)]
    (before / "objects.yaml").write_text(yaml.safe_dump_all(objects))
    (tmp_path / "good.yaml").write_text(yaml.safe_dump(crd(version("v1", COLOURED))))
    bad = crd(version("v1beta1", {"colour": {"type": "string"}}))
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(bad))
    return tmp_path


def rehearse(*words: str) -> int:
    return main(["rehearse", "--jobs", "1", "--no-faults", *words])


def test_go_is_zero_and_no_go_is_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rehearse("--from", "before", "--to", "good.yaml") == 0
    assert capsys.readouterr().out.rstrip().endswith("GO")
    assert rehearse("--from", "before", "--to", "bad.yaml") == 1
    assert "spec.size is gone" in capsys.readouterr().out


def test_releases_follow_one_another_and_forms_go_to_files(folder: Path) -> None:
    code = rehearse(
        "--from", "before", "--to", "good.yaml", "--to", "good.yaml",
        "-o", "json=r.json", "-o", "html=r.html", "-o", "junit=r.xml", "-o", "markdown=r.md",
    )  # fmt: skip

    assert code == 0
    report = json.loads((folder / "r.json").read_text())
    assert report["releases"] == ["good.yaml", "good.yaml (2)"]
    assert {step["release"] for step in report["crds"][0]["steps"]} == {"good.yaml"}
    assert all((folder / name).stat().st_size for name in ("r.html", "r.xml", "r.md"))


def test_a_snapshot_is_accepted_and_a_truncated_one_is_reported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    widgets = [snapshot_widget(f"w{each}", size=each) for each in range(200)]
    whole = write_snapshot(folder / "whole.tar.gz", widgets)
    (folder / "same.yaml").write_text(yaml.safe_dump(CRD))
    data = whole.read_bytes()
    (folder / "half.tar.gz").write_bytes(data[: len(data) // 2])

    assert rehearse("--from", "whole.tar.gz", "--to", "same.yaml") == 0
    assert rehearse("--from", "half.tar.gz", "--to", "same.yaml") in (1, 2)
    assert "Traceback" not in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--from", "nowhere", "--to", "good.yaml"], "nowhere"),
        (["--from", "before", "--to", "nowhere.yaml"], "nowhere.yaml"),
        (["--from", "before", "--to", "good.yaml", "-o", "pdf"], "no form"),
        (["--from", "before", "--to", "good.yaml", "--webhook", "http://x"], "https"),
        (["--from", "before", "--to", "good.yaml", "--webhook-command", "true"], "--webhook"),
        (["--from", "before", "--to", "good.yaml", "--converter", "x"], "module"),
        (["--from", "before", "--to", "good.yaml", "--sample", "0"], "at least 1"),
    ],
)
def test_bad_input_is_one_line_and_two(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert rehearse(*words) == 2
    line = capsys.readouterr().err
    assert told in line
    assert line.count("\n") == 1


def test_the_webhook_is_started_called_and_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    [port] = free_ports(1)
    old = yaml.safe_load((HOSTPORT / "crd.yaml").read_text())
    new = yaml.safe_load((HOSTPORT / "crd.yaml").read_text())
    for each in new["spec"]["versions"]:
        each["storage"] = not each["storage"]
    stored = {
        "apiVersion": "example.com/v1beta1",
        "kind": "CronTab",
        "metadata": {"name": "a", "namespace": "default"},
        "hostPort": "h:1",
    }
    Path("before.yaml").write_text(yaml.safe_dump_all([old, stored]))
    Path("new.yaml").write_text(yaml.safe_dump(new))
    authority = trustme.CA()
    authority.cert_pem.write_to_path("ca.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path("both.pem")
    command = [
        *(sys.executable, "-m", "instar", "webhook", str(HOSTPORT / "conversion.yaml")),
        *("--listen", f"127.0.0.1:{port}", "--cert", "both.pem", "--key", "both.pem"),
    ]

    code = rehearse(
        *("--from", "before.yaml", "--to", "new.yaml", "--webhook-ca", "ca.pem"),
        *("--webhook", f"https://127.0.0.1:{port}/", "--webhook-command", shlex.join(command)),
    )

    assert code == 0, capsys.readouterr().out
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 1).close()
