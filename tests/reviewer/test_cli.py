"""The command: exit codes, outputs, history, objects."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from instar.base.json_values import Object
from instar.cli.main import main
from instar.tools.reviewer.render.outputs import FORMS as OUTPUTS
from instar.tools.reviewer.rules import RULES
from tests.reviewer.golden import FOLDER
from tests.reviewer.widget import add, changed, drop, put, widget
from tests.support.server import live_server
from tests.support.webhook import Webhook

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration of the surroundings."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "instar.toml").write_text("[review]\n")


def write(path: Path, *crds: Object) -> str:
    path.write_text(yaml.safe_dump_all(crds, sort_keys=False))
    return str(path)


def test_clean_pair_exits_0(tmp_path: Path, capsys: Capture) -> None:
    old, new = write(tmp_path / "old.yaml", widget()), write(tmp_path / "new.yaml", widget())

    assert main(["review", old, new]) == 0
    assert "nothing to report" in capsys.readouterr().out


def test_breaking_pair_exits_1_unless_told_otherwise(tmp_path: Path) -> None:
    old = write(tmp_path / "old.yaml", widget())
    new = write(tmp_path / "new.yaml", changed(drop("spec", "note")))

    assert main(["review", old, new]) == 1
    assert main(["review", "--fail-on", "none", old, new]) == 0


def test_warning_fails_only_when_asked(tmp_path: Path) -> None:
    old = write(tmp_path / "old.yaml", widget())
    new = write(tmp_path / "new.yaml", changed(put("spec", "size", default="small")))

    assert main(["review", old, new]) == 0
    assert main(["review", "--fail-on", "warning", old, new]) == 1


def test_bad_input_exits_2_and_the_rest_is_reviewed(tmp_path: Path, capsys: Capture) -> None:
    old = write(tmp_path / "old.yaml", widget())
    folder = tmp_path / "new"
    folder.mkdir()
    write(folder / "good.yaml", changed(drop("spec", "note")))
    (folder / "bad.yaml").write_text("a: [\n}\n")

    code = main(["review", old, str(folder)])

    out = capsys.readouterr().out
    assert code == 2
    assert "field-removed" in out
    assert "bad.yaml:2: not readable as YAML" in out


_UNREADABLE = {
    "broken YAML": b"a: [\n}\n",
    "no text": b"\xff\xfe\x00",
    "no CRD": b"kind: Pod\napiVersion: v1\n",
    "half a CRD": b"kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\n",
    "missing": None,
}


@pytest.mark.parametrize("broken_side", ["old", "new"])
@pytest.mark.parametrize("how", _UNREADABLE)
def test_an_unreadable_file_is_reported_first_and_makes_no_finding(
    tmp_path: Path, capsys: Capture, how: str, broken_side: str
) -> None:
    good, broken = write(tmp_path / "good.yaml", widget()), tmp_path / "broken.yaml"
    if (content := _UNREADABLE[how]) is not None:
        broken.write_bytes(content)
    pair = [str(broken), good] if broken_side == "old" else [good, str(broken)]

    assert main(["review", *pair, "-o", "text", "-o", f"json={tmp_path / 'it.json'}"]) == 2

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"problem  {broken}")
    assert lines[1:] == ["Nothing was reviewed: 1 problem with the input"]
    report = json.loads((tmp_path / "it.json").read_text())
    assert not report["crds"]
    assert not report["onlyOld"]
    assert not report["onlyNew"]


def test_a_finding_is_shown_with_its_line(tmp_path: Path, capsys: Capture) -> None:
    old = write(tmp_path / "old.yaml", widget())
    new = write(tmp_path / "new.yaml", changed(put("spec", "size", enum=["small"])))

    main(["review", old, new])

    [line] = [line for line in capsys.readouterr().out.splitlines() if "enum" in line]
    assert f"{new}:" in line


def test_wrong_configuration_exits_2(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "instar.toml").write_text("[review.severity]\nnonsense = 'error'\n")
    file = write(tmp_path / "crd.yaml", widget())

    assert main(["review", file, file]) == 2
    assert "there is no rule named 'nonsense'" in capsys.readouterr().err


def test_no_source_exits_2() -> None:
    assert main(["review"]) == 2


def test_one_crd_alone_is_linted(tmp_path: Path, capsys: Capture) -> None:
    crd = changed(lambda it: it["spec"]["versions"][0].pop("subresources"))
    file = write(tmp_path / "crd.yaml", crd)

    main(["review", file])

    assert "status-without-subresource" in capsys.readouterr().out


def test_old_problems_are_reported_only_with_all(tmp_path: Path, capsys: Capture) -> None:
    crd = changed(lambda it: it["spec"]["versions"][0].pop("subresources"))
    file = write(tmp_path / "crd.yaml", crd)

    main(["review", file, file])
    quiet = capsys.readouterr().out
    main(["review", "--all", file, file])
    loud = capsys.readouterr().out

    assert "status-without-subresource" not in quiet
    assert "status-without-subresource" in loud


def test_crds_on_one_side_only_are_named(tmp_path: Path, capsys: Capture) -> None:
    other = widget()
    other["metadata"]["name"] = "gadgets.example.com"
    old = write(tmp_path / "old.yaml", widget(), other)
    new = write(tmp_path / "new.yaml", widget())

    main(["review", old, new])

    assert "gadgets.example.com  only in OLD" in capsys.readouterr().out


@pytest.mark.parametrize("output", OUTPUTS)
def test_every_output_form_is_written(tmp_path: Path, capsys: Capture, output: str) -> None:
    old = write(tmp_path / "old.yaml", widget())
    new = write(tmp_path / "new.yaml", changed(drop("spec", "note")))

    assert main(["review", "-o", output, old, new]) == 1
    assert "field-removed" in capsys.readouterr().out


def test_findings_carry_the_line_of_the_file_they_are_about(
    tmp_path: Path, capsys: Capture
) -> None:
    old = write(tmp_path / "old.yaml", widget())
    new = write(tmp_path / "new.yaml", changed(put("spec", "image", maxLength=63)))

    main(["review", "-o", "json", old, new])

    [first, _] = json.loads(capsys.readouterr().out)["crds"][0]["findings"]
    assert first["file"] == new
    assert "maxLength: 63" in Path(new).read_text().splitlines()[first["line"] - 1]


def test_removed_field_points_into_the_old_file(tmp_path: Path, capsys: Capture) -> None:
    old = write(tmp_path / "old.yaml", widget())
    new = write(tmp_path / "new.yaml", changed(drop("spec", "note")))

    main(["review", "-o", "json", old, new])

    [first, _] = json.loads(capsys.readouterr().out)["crds"][0]["findings"]
    assert first["file"] == old
    assert Path(old).read_text().splitlines()[first["line"] - 1].strip() == "note:"


def test_rules_are_listed(capsys: Capture) -> None:
    assert main(["review", "--rules"]) == 0

    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == [rule.id for rule in RULES]


def test_baseline_is_written_and_used(tmp_path: Path) -> None:
    old = write(tmp_path / "old.yaml", widget())
    new = write(tmp_path / "new.yaml", changed(drop("spec", "note")))

    assert main(["review", "--write-baseline", "known.json", old, new]) == 0
    assert main(["review", "--baseline", "known.json", old, new]) == 0
    assert main(["review", old, new]) == 1


def test_history_walks_a_file_through_git(tmp_path: Path, capsys: Capture) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", *words], check=True, capture_output=True, cwd=tmp_path)

    git("init", "-q")
    git("config", "user.email", "a@example.com")
    git("config", "user.name", "a")
    for title, crd in (
        ("start", widget()),
        ("add colour", changed(add(("spec", "colour"), {"type": "string"}))),
        ("drop note", changed(drop("spec", "note"))),
    ):
        write(tmp_path / "crd.yaml", crd)
        git("add", "crd.yaml")
        git("commit", "-q", "-m", title)

    code = main(["review", "--history", "crd.yaml", "-o", "json"])

    steps = json.loads(capsys.readouterr().out)["crds"]
    assert code == 1
    assert [step["step"].split(" ", 2)[2] for step in steps] == ["add colour", "drop note"]
    rules = [{item["rule"] for item in step["findings"]} for step in steps]
    assert rules[0] == {"field-added"}
    assert "field-removed" in rules[1]


def test_objects_of_a_folder_are_tried(tmp_path: Path, capsys: Capture) -> None:
    old = write(tmp_path / "old.yaml", widget())
    new = write(tmp_path / "new.yaml", changed(put("spec", "image", maxLength=3)))
    folder = tmp_path / "objects"
    folder.mkdir()
    for name, image in (("a", "abc"), ("b", "abcd")):
        write(folder / f"{name}.yaml", _object(name, image=image))

    main(["review", "--objects", str(folder), "-o", "json", old, new])

    stored = json.loads(capsys.readouterr().out)["crds"][0]["stored"]
    assert stored["tried"] == 2
    assert [(item["name"], item["outcome"]) for item in stored["objects"]] == [("b", "frozen")]


def test_objects_of_a_cluster_are_tried(tmp_path: Path, capsys: Capture) -> None:
    new = write(tmp_path / "new.yaml", changed(put("spec", "image", maxLength=3)))
    with live_server() as server:
        server.create_crd(widget())
        for name, image in (("a", "abc"), ("b", "abcd")):
            path = "/apis/example.com/v1/namespaces/default/widgets"
            assert server.request("POST", path, _object(name, image=image)).status == 201

        cluster = ["--kubeconfig", str(server.kubeconfig), "--objects", "kube:"]
        main(["review", *cluster, "-o", "json", "kube:widgets.example.com", new])

    stored = json.loads(capsys.readouterr().out)["crds"][0]["stored"]
    assert stored["tried"] == 2
    assert [item["name"] for item in stored["objects"]] == ["default/b"]


def test_converter_is_applied_between_versions(tmp_path: Path, capsys: Capture) -> None:
    folder = FOLDER / "conversion-loses"
    converter = str(folder / "conversion.yaml")

    code = main(["review", "--converter", converter, str(folder / "new.yaml")])

    assert code == 1
    assert "conversion-loses  v1beta1 spec.length" in capsys.readouterr().out


def test_webhook_is_applied_between_versions(tmp_path: Path, capsys: Capture) -> None:
    def drop_length(obj: dict[str, Any], api_version: str) -> dict[str, Any]:
        spec = {name: value for name, value in obj.get("spec", {}).items() if name != "length"}
        return {**obj, "apiVersion": api_version, **({"spec": spec} if "spec" in obj else {})}

    with Webhook(convert=drop_length) as hook:
        authority = tmp_path / "ca.pem"
        authority.write_bytes(hook.authority.cert_pem.bytes())
        webhook = ["--webhook", hook.url, "--webhook-ca", str(authority)]

        code = main(["review", *webhook, str(FOLDER / "conversion-loses" / "new.yaml")])

        assert code == 1
        assert "conversion-loses  v1beta1 spec.length" in capsys.readouterr().out
        assert hook.reviews > 0


def test_a_webhook_with_an_untrusted_certificate_is_a_failed_conversion(capsys: Capture) -> None:
    with Webhook() as hook:
        code = main(
            ["review", "--webhook", hook.url, str(FOLDER / "conversion-loses" / "new.yaml")]
        )

    printed = capsys.readouterr()
    assert code in (1, 2)
    assert "certificate" in printed.out + printed.err


def test_unusable_converter_exits_2(tmp_path: Path) -> None:
    file = write(tmp_path / "crd.yaml", widget())

    assert main(["review", "--converter", "no.such:thing", file]) == 2


def test_crd_a_server_could_not_read_exits_2_with_its_line(tmp_path: Path, capsys: Capture) -> None:
    crd = changed(put("spec", "image", maxLength="long"))
    file = write(tmp_path / "crd.yaml", crd)

    assert main(["review", file]) == 2
    assert f"{file}:1: not a usable CRD: json: cannot unmarshal" in capsys.readouterr().out


def _object(name: str, **spec: Any) -> Object:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": spec,
    }
