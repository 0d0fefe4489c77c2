from __future__ import annotations

import argparse
import io
import json
import stat
from pathlib import Path

import pytest
import yaml

from instar.cli.commands import convert
from instar.cli.shared.failure import CliFailure

RULES = """
conversion: instar/v1
group: example.com
kind: CronTab
hub: v1
pairs:
  - between: [v1beta1, v1]
    rules:
      - split: {path: spec.hostPort, template: "{spec.host}:{spec.port:int}"}
      - move: {old: spec.img, new: spec.image}
"""
MANIFEST = """\
# the file's own comment
apiVersion: v1
kind: ConfigMap
metadata: {name:   oddly   , namespace: spaced}   # left alone
---
apiVersion: example.com/v1beta1   # version
kind: CronTab
metadata:
  name: a   # its name
spec:
  # where it listens
  hostPort: "h:80"
  # what it runs
  img: "busybox"   # an image
  args:
    - one   # first
    - two
"""
EXPECTED = """\
# the file's own comment
apiVersion: v1
kind: ConfigMap
metadata: {name:   oddly   , namespace: spaced}   # left alone
---
apiVersion: example.com/v1        # version
kind: CronTab
metadata:
  name: a   # its name
spec:
  # where it listens
  host: h
  port: 80
  # what it runs
  image: "busybox" # an image
  args:
    - one   # first
    - two
"""


@pytest.fixture
def rules(tmp_path: Path) -> str:
    path = tmp_path / "rules" / "conversion.yaml"
    path.parent.mkdir()
    path.write_text(RULES)
    return str(path)


def _run(rules: str, *words: str) -> int:
    parser = argparse.ArgumentParser()
    convert.add_arguments(parser)
    return convert.run(parser.parse_args(["--converter", rules, "--to", "v1", *words]))


def test_comments_and_foreign_documents_survive(
    rules: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(MANIFEST)

    code = _run(rules, str(path))

    out = capsys.readouterr().out
    assert code == 0
    assert out.split("---")[0] == MANIFEST.split("---")[0]
    assert list(yaml.safe_load_all(out)) == list(yaml.safe_load_all(EXPECTED))
    for comment in ("# version", "# its name", "# what it runs", "# an image", "# first"):
        assert comment in out
    assert '"busybox"' in out


def test_in_place_keeps_mode_and_is_idempotent(rules: str, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(MANIFEST)
    path.chmod(0o640)

    first, once = _run(rules, "-i", str(path)), path.read_text()
    second, twice = _run(rules, "-i", str(path)), path.read_text()

    assert (first, second) == (0, 0)
    assert once == twice != MANIFEST
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a.yaml", "rules"]


def test_check_tells_and_writes_nothing(
    rules: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(MANIFEST)

    code = _run(rules, "--check", str(path))

    assert code == 1
    assert "1 object to convert" in capsys.readouterr().out
    assert path.read_text() == MANIFEST
    path.write_text(MANIFEST.split("---")[0])
    assert _run(rules, "--check", str(path)) == 0


def test_diff_shows_only_what_changes(
    rules: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(MANIFEST)

    code = _run(rules, "--diff", str(path))

    out = capsys.readouterr().out
    assert code == 0
    assert '-  hostPort: "h:80"' in out
    assert "+  port: 80" in out
    assert "ConfigMap" not in [line[1:] for line in out.splitlines() if line[0] in "+-"]


def test_directories_are_walked_and_hidden_ones_are_not(rules: str, tmp_path: Path) -> None:
    folder = tmp_path / "deploy"
    (folder / "deep").mkdir(parents=True)
    (folder / ".git").mkdir()
    for place in ("deep/a.yml", ".git/b.yaml", "c.txt"):
        (folder / place).write_text(MANIFEST)

    _run(rules, "-i", str(folder))

    assert "example.com/v1 " in (folder / "deep/a.yml").read_text()
    assert (folder / ".git/b.yaml").read_text() == MANIFEST
    assert (folder / "c.txt").read_text() == MANIFEST


def test_stdin_goes_to_stdout(
    rules: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(MANIFEST))

    assert _run(rules) == 0
    assert list(yaml.safe_load_all(capsys.readouterr().out))[1]["spec"]["port"] == 80


@pytest.mark.parametrize(("indent", "sign"), [(2, "\n"), (None, "")])
def test_json_keeps_its_layout_and_items_of_lists_are_converted(
    indent: int | None, sign: str, rules: str, tmp_path: Path
) -> None:
    item = {
        "apiVersion": "example.com/v1beta1",
        "kind": "CronTab",
        "metadata": {"name": "a"},
        "spec": {"img": "x"},
    }
    document = {"apiVersion": "v1", "kind": "List", "items": [item, {"kind": "Other"}]}
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document, indent=indent))

    _run(rules, "-i", str(path))

    text = path.read_text()
    assert json.loads(text)["items"][0]["spec"] == {"image": "x"}
    assert ("\n" in text) == bool(sign)


def test_a_template_is_left_alone_and_reported(
    rules: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.yaml"
    text = "kind: Fine\n---\n{{- if .x }}\nkind: {{ .y }}\n{{- end }}\n---\n" + MANIFEST
    path.write_text(text)

    code = _run(rules, "-i", str(path))

    assert code == 1
    assert "left alone (a template?)" in capsys.readouterr().err
    assert path.read_text().startswith(
        "kind: Fine\n---\n{{- if .x }}\nkind: {{ .y }}\n{{- end }}\n---\n"
    )
    assert "port: 80" in path.read_text()


def test_an_object_that_cannot_be_converted_is_reported_with_its_line(
    rules: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(MANIFEST.replace("h:80", "nonsense"))

    code = _run(rules, "-i", str(path))

    assert code == 1
    assert "line 5: a: spec.hostPort could not be parsed" in capsys.readouterr().err
    assert "nonsense" in path.read_text()


def test_dates_are_not_mangled(rules: str, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(MANIFEST + "  since: 2020-01-01\n")

    _run(rules, "-i", str(path))

    assert "since: 2020-01-01\n" in path.read_text()


CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: crontabs, kind: CronTab}
  versions:
    - name: v1beta1
      served: true
      storage: false
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [image]
              properties:
                host: {type: string}
                port: {type: integer, maximum: 1024}
                image: {type: string}
                args: {type: array, items: {type: string}}
"""


@pytest.fixture
def crd(tmp_path: Path) -> str:
    path = tmp_path / "rules" / "crd.yaml"
    path.write_text(CRD)
    return str(path)


def test_objects_that_a_server_accepts_are_converted(rules: str, crd: str, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(MANIFEST)

    code = _run(rules, "-i", "--crd", crd, str(path))

    assert (code, path.read_text()) == (0, EXPECTED)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("  args:", "  more: 1\n  args:"), "v1 does not know spec.more: a server drops it"),
        (("h:80", "h:8080"), "the result is not valid at v1: spec.port: Invalid value: 8080"),
        (
            ("name: a ", "name: A "),
            'not valid at v1: metadata.name: Invalid value: "A"',
        ),
    ],
)
def test_objects_that_a_server_would_refuse_are_left_alone_and_reported(
    rules: str,
    crd: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: tuple[str, str],
    said: str,
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(MANIFEST.replace(*change))

    code = _run(rules, "-i", "--crd", crd, str(path))

    errors = capsys.readouterr().err
    assert code == 1
    assert "line 5: " in errors
    assert said in errors
    assert path.read_text() == MANIFEST.replace(*change)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CRD.replace("name: v1\n", "name: v2\n"), "no CRD given has version 'v1' of CronTab"),
        ("kind: CustomResourceDefinition\nspec: 1", "not a usable CRD"),
        ("a: [", "crd.yaml:2: not readable as YAML"),
        ("", "no CRD given"),
    ],
)
def test_a_crd_that_is_none_exits_2(rules: str, crd: str, text: str, message: str) -> None:
    Path(crd).write_text(text)

    with pytest.raises(CliFailure, match=message) as caught:
        _run(rules, "--crd", crd)

    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--to", "v9"], "has no version 'v9'"),
        (["--check", "-i"], "mutually exclusive"),
        (["/absent.yaml"], "No such file"),
        (["--converter", "nothing"], "neither package.module"),
    ],
)
def test_wrong_calls_exit_2(rules: str, words: list[str], message: str) -> None:
    with pytest.raises(CliFailure, match=message) as caught:
        _run(rules, *words)

    assert caught.value.code == 2


def test_a_document_with_keys_that_are_not_text_is_left_alone_and_reported(
    rules: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.yaml"
    text = MANIFEST + "  labels: {on: 1}\n"
    path.write_text(text)

    code = _run(rules, str(path))

    out, err = capsys.readouterr()
    assert code == 1
    assert out == text
    assert "line 5: keys that are no plain text cannot be kept" in err
