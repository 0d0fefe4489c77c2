"""``instar test``: suites as YAML; each case gets a server's answer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from instar.cli.main import main

DOCS = Path(__file__).parents[2] / "docs" / "how-to" / "crd-unit-tests.md"
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - &version
    name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - {rule: "!has(self.colour) || self.colour != 'none'", message: not none}
            - {rule: "!has(oldSelf.colour) || self.colour == oldSelf.colour", message: stays}
            properties:
              size: {type: integer, minimum: 5, default: 5}
              colour: {type: string, enum: [red, blue, none]}
          status: {type: object, properties: {ready: {type: boolean}}}
  - <<: *version
    name: v1beta1
    storage: false
"""


def case(**members: str) -> str:
    lines = [f"  - name: {members.pop('name', 'one')}"]
    for name, value in members.items():
        lines.append(f"    {name}: |\n      " + value.replace("\n", "\n      "))
    return "\n".join(lines) + "\n"


def widget(rest: str = "spec: {}", version: str = "v1") -> str:
    return f"apiVersion: example.com/{version}\nkind: Widget\n{rest}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crd.yaml").write_text(CRD)
    return tmp_path


def suite(folder: Path, act: str, *cases: str) -> None:
    (folder / "suite.yaml").write_text(
        f"crdName: widgets.example.com\ntests:\n  {act}:\n{''.join(cases)}"
    )


def outcome(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str]]:
    code = main(["test", "suite.yaml", *words])
    return code, capsys.readouterr().out.splitlines()


def test_the_suite_of_the_docs_passes_as_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = re.compile(r"            x-kubernetes-validations:\n(            - .*\n)+")
    (folder / "crd.yaml").write_text(rules.sub("", CRD))
    text = re.search(r"^```yaml\n(.*?)^```", DOCS.read_text(), re.MULTILINE | re.DOTALL)
    assert text is not None
    (folder / "suite.yaml").write_text(text[1])

    code, lines = outcome(capsys)

    assert (code, lines[-1].split(" in ")[0]) == (0, "5 passed")


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (
            case(initial=widget(), expected=widget("spec: {size: 6}")),
            "    changed  spec.size: 6 → 5",
        ),
        (
            case(initial=widget("spec: {size: 1}")),
            "    refused: Widget.example.com",
        ),
        (
            case(initial=widget(), expectedError="too small"),
            "    accepted; a refusal was expected with: too small",
        ),
        (
            case(initial=widget("spec: {size: 1}"), expectedError="too large"),
            "    expected were: too large",
        ),
        (case(initial=widget().replace("Widget", "Gadget")), "    example.com/v1 Gadget is not of"),
    ],
)
def test_a_failure_says_what_was_expected_and_what_came(
    folder: Path, capsys: pytest.CaptureFixture[str], made: str, told: str
) -> None:
    suite(folder, "onCreate", made)

    code, lines = outcome(capsys)

    assert code == 1
    assert lines[0] == "suite.yaml:4: FAILED onCreate: one"
    assert any(line.startswith(told) for line in lines)


def test_the_value_quoted_by_invalid_value_does_not_count(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = 'spec.size: Invalid value: "integer": spec.size in body should be greater'
    suite(folder, "onCreate", case(initial=widget("spec: {size: 1}"), expectedError=old))

    assert outcome(capsys)[0] == 0


def test_a_status_is_written_by_its_own_request(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_status = widget("spec: {size: 5}\nstatus: {ready: true}")
    suite(
        folder,
        "onUpdate",
        case(name="kept", initial=with_status, updated=with_status, expected=with_status),
        case(
            name="refused",
            initial=widget(),
            updated=widget("spec: {}\nstatus: {ready: 3}"),
            expectedStatusError="status.ready",
        ),
    )

    assert outcome(capsys)[0] == 0


def test_a_case_sees_nothing_of_the_one_before(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = widget("metadata: {name: same, finalizers: [example.com/stays]}\nspec: {}")
    suite(folder, "onCreate", case(name="a", initial=named), case(name="b", initial=named))

    assert outcome(capsys)[0] == 0


def test_coverage_names_what_no_case_exercises(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite(
        folder,
        "onUpdate",
        case(
            initial=widget("spec: {colour: red}"),
            updated=widget("spec: {colour: blue}"),
            expectedError="stays",
        ),
    )

    code, lines = outcome(capsys, "--coverage")

    missing = {line.strip() for line in lines}
    assert code == 0
    assert "v1 spec.size property" in missing
    assert "v1 spec.size minimum 5" in missing
    assert "v1 spec.colour enum none" in missing
    assert "v1 spec rule !has(self.colour) || self.colour != 'none'" in missing
    assert "v1 to v1beta1" in missing
    assert "v1 spec.colour enum red" not in missing
    assert not any("oldSelf" in line for line in missing if line.startswith("v1 "))
    assert main(["test", "suite.yaml", "--fail-under", "99"]) == 1


def test_a_written_suite_passes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "--write", "crd.yaml", "suite.yaml"]) == 0
    assert main(["test", "--write", "crd.yaml", "suite.yaml"]) == 2, "nothing is overwritten"
    capsys.readouterr()

    code, lines = outcome(capsys)

    assert code == 0
    assert int(lines[-1].split()[0]) > 8


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("crdName: x\ntests:\n  onSleep: []\n", "suite.yaml:3: 'onSleep' is not one of onCreate"),
        ("crdName: x\ntests:\n  onCreate:\n  - {}\n", "suite.yaml:4: a case is an object with a"),
        (
            "crdName: x\ntests:\n  onCreate:\n  - {name: a, initial: 'a: ['}\n",
            "suite.yaml:4: not readable as YAML",
        ),
        (
            "crdName: x\ntests:\n  onUpdate:\n  - {name: a, initial: 'a: 1'}\n",
            "suite.yaml:4: onUpdate needs 'updated'",
        ),
        (
            "crdName: x\ntests:\n  onCreate:\n  - {name: a, intial: 'a: 1'}\n",
            "suite.yaml:4: onCreate has no 'intial'",
        ),
        ("a: 1\n", "no suite found in suite.yaml"),
    ],
)
def test_a_file_that_is_not_a_suite_says_where_and_why(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    (folder / "suite.yaml").write_text(text)

    assert main(["test", "suite.yaml"]) == 2
    assert told in capsys.readouterr().err


def test_a_suite_without_its_crd_does_not_stop_the_others(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite(folder, "onCreate", case(initial=widget()))
    (folder / "other.yaml").write_text("crdName: no.example.com\ntests: {onCreate: []}\n")

    assert main(["test", "suite.yaml", "other.yaml"]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "other.yaml: there is no CRD no.example.com in --crd or around it"
    assert lines[-1].startswith("1 passed")


def test_machines_read_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite(
        folder,
        "onCreate",
        case(name="good", initial=widget()),
        case(name="bad", initial=widget("spec: {size: 1}")),
    )

    def output(form: str) -> str:
        main(["test", "suite.yaml", "-o", form])
        return capsys.readouterr().out

    assert [each["passed"] for each in json.loads(output("json"))["cases"]] == [True, False]
    cases = list(Xml.fromstring(output("junit")).iter("testcase"))
    assert [each.find("failure") is not None for each in cases] == [False, True]
    assert output("github").startswith("::error file=suite.yaml,line=9,title=instar test::bad")
