"""``instar validate``: manifests get the server's answer, and the place of it in their file."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from instar.cli.main import main
from instar.tools.validator.removed_apis import REMOVED

CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://nobody.example.com/"}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: &schema
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - {rule: "!has(self.colour) || self.colour != 'none'", message: no colour is no colour}
            properties:
              size: {type: integer, minimum: 5}
              colour: {type: string}
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: *schema}}
  - {name: v1alpha1, served: false, storage: false, schema: {openAPIV3Schema: *schema}}
"""
GOOD = """\
apiVersion: example.com/v1
kind: Widget
metadata: {name: good}
spec: {size: 7}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crd.yaml").write_text(CRD)
    return tmp_path


def widget(spec: str, version: str = "v1") -> str:
    return f"apiVersion: example.com/{version}\nkind: Widget\nmetadata: {{name: one}}\n{spec}"


def told(folder: Path, text: str, *words: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    (folder / "o.yaml").write_text(text)
    main(["validate", *words, "crd.yaml", "--", "o.yaml"])
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            widget("spec:\n  size: 3\n"),
            "o.yaml:5: error: Widget one: spec.size: Invalid value: 3: spec.size in body should "
            "be greater than or equal to 5",
        ),
        (
            widget("spec:\n  sise: 7\n"),
            'o.yaml:5: error: Widget one: spec.sise: unknown field "spec.sise"',
        ),
        (
            GOOD + "---\n" + widget("spec:\n  size: 7\n  size: 8\n"),
            'o.yaml:6: error: Widget one: line 11: key "size" already set in map',
        ),
        (
            widget("spec:\n  colour: none\n"),
            "o.yaml:4: error: Widget one: spec: Invalid value: no colour is no colour",
        ),
        (
            widget("spec: {size: 7}\n", "v1alpha1"),
            "o.yaml:1: error: Widget one: apiVersion: example.com/v1alpha1 is not served: "
            "widgets.example.com is served as v1, v1beta1",
        ),
        (
            "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec:\n  ports:\n  - port: 0\n",
            "o.yaml:6: error: Service s: spec.ports[0].port: Invalid value: 0: must be between 1 "
            "and 65535, inclusive",
        ),
        (
            "apiVersion: other.com/v1\nkind: Other\nmetadata: {name: x}\n",
            "o.yaml:1: unknown: Other x: no CRD was given for other.com/v1 Other, and it is not "
            "built in",
        ),
        ("- 1\n", "o.yaml:1: error: not a Kubernetes object: it has no apiVersion and kind"),
        ("a: [\n", "o.yaml:2: error: not readable as YAML: did not find expected node content"),
    ],
)
def test_a_refusal_names_file_line_object_and_field(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, expected: str
) -> None:
    lines = told(folder, text, capsys=capsys)

    assert expected in lines


def test_valid_objects_at_any_served_version_are_counted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = GOOD + "---\n" + widget("spec: {size: 7}\n", "v1beta1")

    assert told(folder, text, capsys=capsys) == ["2 objects: 2 valid"]


def test_the_exit_code_says_whether_something_was_refused(folder: Path) -> None:
    (folder / "good.yaml").write_text(GOOD)
    (folder / "bad.yaml").write_text(widget("spec: {size: 1}\n"))
    (folder / "unknown.yaml").write_text("apiVersion: a.io/v1\nkind: A\nmetadata: {name: a}\n")

    assert main(["validate", "crd.yaml", "--", "good.yaml"]) == 0
    assert main(["validate", "crd.yaml", "--", "bad.yaml"]) == 1
    assert main(["validate", "crd.yaml", "--", "unknown.yaml"]) == 1
    assert main(["validate", "--ignore-unknown", "crd.yaml", "--", "unknown.yaml"]) == 0
    assert main(["validate", "crd.yaml", "--", "nowhere.yaml"]) == 2
    assert main(["validate", "nowhere.yaml", "--", "good.yaml"]) == 2


def test_crds_among_the_objects_validate_the_other_objects(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "all.yaml").write_text(widget("spec: {size: 7}\n") + "---\n" + CRD)

    assert main(["validate", "all.yaml"]) == 0
    assert capsys.readouterr().out == "2 objects: 2 valid\n"


def test_a_crd_that_no_server_takes_is_a_refusal_itself(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "broken.yaml").write_text(CRD.replace("plural: widgets,", "plural: other,"))

    assert main(["validate", "broken.yaml"]) == 1
    assert "metadata.name" in capsys.readouterr().out


def test_an_update_is_forgiven_what_was_wrong_before_and_is_left_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = folder / "before"
    before.mkdir()
    (before / "o.yaml").write_text(widget("spec: {size: 1, colour: red}\n"))

    left = told(folder, widget("spec: {size: 1, colour: blue}\n"), "--old", "before", capsys=capsys)
    touched = told(
        folder, widget("spec: {size: 2, colour: red}\n"), "--old", "before", capsys=capsys
    )

    assert left == ["1 object: 1 valid"]
    assert touched[-1] == "1 object: 0 valid, 1 refused"


def test_several_processes_say_what_one_says(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("instar.tools.validator.run._BYTES_A_PROCESS", 100)
    many = folder / "many"
    many.mkdir()
    for number in range(6):
        (many / f"{number}.yaml").write_text(widget(f"spec: {{size: {number + 2}}}\n"))

    main(["validate", "--jobs", "1", "crd.yaml", "--", "many"])
    one = capsys.readouterr().out
    main(["validate", "--jobs", "2", "crd.yaml", "--", "many"])
    two = capsys.readouterr().out

    assert one == two
    assert one.endswith("6 objects: 3 valid, 3 refused\n")


def test_machines_read_the_same_findings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "o.yaml").write_text(widget("spec:\n  size: 3\n") + "---\n" + GOOD)

    def output(form: str) -> str:
        main(["validate", "-o", form, "crd.yaml", "--", "o.yaml"])
        return capsys.readouterr().out

    found = json.loads(output("json"))
    assert (found["objects"], found["valid"], found["error"]) == (2, 1, 1)
    assert found["findings"][0]["field"] == "spec.size"
    result = json.loads(output("sarif"))["runs"][0]["results"][0]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("o.yaml", 5)
    assert [case.get("name") for case in Xml.fromstring(output("junit")).iter("testcase")] == [
        "Widget one",
        "Widget good",
    ]
    assert output("github").startswith("::error file=o.yaml,line=5,title=instar validate::")


TYPE_FAULTS = {
    "built-in, in a list": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n"
        "  - name: good\n    image: a\n  - name: bad\n    image: 7\n",
        9,
    ),
    "metadata": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels:\n    good: a\n"
        "    bad: 1\n",
        7,
    ),
    "a map for a list": (
        "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec:\n  type: ClusterIP\n"
        "  ports:\n    a: b\n",
        6,
    ),
    "a CRD": (CRD.replace("    storage: true\n", "    storage: 'yes'\n"), 14),
}


@pytest.mark.parametrize("name", TYPE_FAULTS)
def test_a_value_of_the_wrong_type_has_its_own_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, line = TYPE_FAULTS[name]
    file = tmp_path / "a.yaml"
    file.write_text(f"# a comment\n{text}")

    assert main(["validate", str(file)]) == 1

    told = capsys.readouterr().out
    assert told.startswith(f"{file}:{line + 1}: error: "), told
    assert "cannot unmarshal" in told


def test_two_crds_of_one_name_have_their_own_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.yaml"
    first = CRD.replace("{type: string}", "{type: text}")
    file.write_text(f"{first}---\n{CRD.replace('scope: Namespaced', 'scope: 1')}")

    assert main(["validate", str(file)]) == 1

    told = capsys.readouterr().out.splitlines()
    assert any("text" in line and "Unsupported value" in line for line in told)
    assert any("cannot unmarshal" in line for line in told)


@pytest.mark.parametrize(("api_version", "kind"), sorted(REMOVED))
def test_a_removed_api_says_since_when_and_what_to_write(
    api_version: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = REMOVED[api_version, kind]
    file = tmp_path / "a.yaml"
    file.write_text(f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n")

    assert main(["validate", str(file)]) == 1

    told = capsys.readouterr().out.splitlines()[0]
    assert told.startswith(f"{file}:1: error: ")
    assert f"was removed in Kubernetes {gone.removed}" in told
    assert gone.replacement in told
    assert gone.replacement or gone.note


def test_replacements_of_removed_apis_are_known_to_the_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = {(gone.replacement, kind) for (_, kind), gone in REMOVED.items() if gone.replacement}
    file = tmp_path / "a.yaml"
    file.write_text(
        "---\n".join(
            f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n"
            for api_version, kind in sorted(named)
        )
    )

    main(["validate", str(file)])

    told = capsys.readouterr().out
    assert "not built in" not in told
    assert "is not served" not in told
    assert "was removed" not in told


def test_gitlab_gets_an_issue_for_each_finding(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.yaml").write_text(widget("spec: {size: 3, colour: none}\n"))

    assert main(["validate", "crd.yaml", "-o", "gitlab", "--", "a.yaml"]) == 1

    found = json.loads(capsys.readouterr().out)
    assert {each["location"]["path"] for each in found} == {"a.yaml"}
    assert all(each["severity"] == "critical" and each["check_name"] for each in found)
    assert len({each["fingerprint"] for each in found}) == len(found)
