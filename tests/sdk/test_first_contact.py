"""What a new user's first mistakes are answered with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from instar.cli.main import main
from instar.cli.serving.converter_flags import why_unused
from instar.kube.api.crd import read_crd
from instar.sdk import Admission, ConverterDefinitionError
from tests.e2e.make import widget_crd
from tests.support.server import live_server

ROOT = Path(__file__).resolve().parents[2]
CRON = ROOT / "examples" / "cron"
FAILING = """
from instar.sdk import Converter

crontab = Converter("CronTab", group="stable.example.com")


@crontab.convert("v1", "v2")
def there(obj):
    obj["spec"]["nothing-here"]


@crontab.convert("v2", "v1")
def back(obj):
    return obj
"""


def _instar(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "instar", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_census_makes_no_file_of_a_mistyped_name(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["census", "--storage", "sqlite:typo.db"]) == 1

    assert list(here.iterdir()) == []
    assert capsys.readouterr().err == "instar census: sqlite:typo.db: no such file\n"


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ({}, "nope.crt: No such file or directory"),
        ({"nope.crt": "x"}, "nope.key: No such file or directory"),
        ({"nope.crt": "x", "nope.key": "y"}, "nope.crt and nope.key: not usable as PEM"),
    ],
)
def test_a_webhook_names_the_certificate_it_cannot_use(
    here: Path, capsys: pytest.CaptureFixture[str], found: dict[str, str], told: str
) -> None:
    for name, text in found.items():
        (here / name).write_text(text)
    rules = str(ROOT / "examples" / "hostport" / "conversion.yaml")
    words = ["--cert", "nope.crt", "--key", "nope.key", "--listen", "127.0.0.1:0"]

    assert main(["webhook", rules, *words]) == 1

    assert capsys.readouterr().err.startswith(f"instar webhook: {told}")


def test_a_module_with_a_syntax_error_is_a_wrong_call(here: Path) -> None:
    (here / "broken.py").write_text("def there(obj):\n    return obj[\n")
    done = _instar(
        "check", "--crd", str(CRON / "crd.yaml"), "--converter", "broken:crontab", cwd=here
    )

    assert done.returncode == 2
    assert "broken.py:2" in done.stderr
    assert "Traceback" not in done.stderr


def test_check_names_the_missing_key_and_with_a_flag_the_traceback(here: Path) -> None:
    (here / "failing.py").write_text(FAILING)
    words = ["check", "--crd", str(CRON / "crd.yaml"), "--converter", "failing:crontab"]
    words += ["--laws", "total", "--examples", "20"]

    done, verbose = _instar(*words, cwd=here), _instar(*words, "--verbose", cwd=here)

    assert done.returncode == 1
    assert "KeyError at failing.py:9 in there: 'nothing-here'" in done.stdout
    assert "Traceback" not in done.stderr
    assert 'obj["spec"]["nothing-here"]' in verbose.stderr


def test_a_converter_for_another_group_is_refused(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = str(ROOT / "examples" / "hostport" / "conversion.yaml")

    assert main(["serve", "--storage", "memory:", "--converter", f"x.other.com={rules}"]) == 2

    assert "converts CronTab.example.com" in capsys.readouterr().err


def test_a_converter_that_is_never_called_is_reported() -> None:
    crd = read_crd(widget_crd("typo.example.com"))

    assert "strategy is None" in str(why_unused(["widgets.typo.example.com"], [crd]))
    assert "widgets.typo.example.com is there" in str(
        why_unused(["widget.typo.example.com"], [crd])
    )
    assert why_unused(["gadgets.typo.example.com"], [crd]) is None
    assert why_unused(["widgets.typo.example.com"], []) is None


def test_a_crd_created_later_gets_a_warning_that_its_converter_is_not_called(here: Path) -> None:
    crd = widget_crd("later.example.com")
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    converters = {"widgets.later.example.com": lambda objects, version: objects}
    with live_server(converters=converters) as server:
        created = server.request("POST", path, crd)
        other = server.request("POST", path, widget_crd("other.example.com"))

    assert created.status == 201
    assert "spec.conversion.strategy is Webhook" in created.warnings[0]
    assert other.warnings == []


@pytest.mark.parametrize("group", ["Bad Group", "a..b", "-a.com"])
def test_admission_of_a_group_that_cannot_be_is_refused(group: str) -> None:
    with pytest.raises(ConverterDefinitionError, match="cannot be the name of an API group"):
        Admission(group)


def test_admission_of_the_empty_group_is_of_pods_and_their_like() -> None:
    admission = Admission("")

    @admission.validate("pods")
    def no_latest(obj: dict[str, Any]) -> None:
        return

    [document] = admission.configurations(lambda path: {"url": f"https://host{path}"})
    with live_server() as server:
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        answer = server.request("POST", f"{path}?fieldValidation=Strict", document)

    assert document["metadata"]["name"] == "core"
    assert answer.status == 201, answer.text


def test_a_server_does_not_start_with_a_converter_that_is_never_called(here: Path) -> None:
    rules = str(ROOT / "examples" / "hostport" / "conversion.yaml")
    crd = (ROOT / "examples" / "hostport" / "crd.yaml").read_text()
    code = (
        "import sys, pathlib, instar.testing, yaml\n"
        "crd = yaml.safe_load(sys.stdin.read())\n"
        "crd['spec']['conversion'] = {'strategy': 'None'}\n"
        "with instar.testing.server(storage='sqlite:it.db') as server:\n"
        "    server.install(crd)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=here, input=crd, text=True, check=True)
    done = _instar(
        *("serve", "--listen", "127.0.0.1:0", "--storage", "sqlite:it.db"),
        *("--converter", f"crontabs.example.com={rules}"),
        cwd=here,
    )

    assert done.returncode == 1, done.stdout
    assert "the CRD's conversion strategy is None" in done.stderr
    assert "Traceback" not in done.stderr
