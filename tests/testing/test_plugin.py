"""The pytest plugin, in suites as their authors write them: each test runs pytest of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "testing"


def _pytest(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def _suite(folder: Path, code: str) -> Path:
    folder.joinpath("test_suite.py").write_text(code)
    return folder


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "examples"


def test_the_examples_with_every_client_library_run(examples: Path) -> None:
    done = _pytest(examples)

    assert done.returncode == 0, done.stdout
    assert "instar.access" not in done.stdout


def test_each_worker_of_xdist_has_a_server_of_its_own(tmp_path: Path) -> None:
    code = (
        "import pytest\n"
        "@pytest.mark.parametrize('n', range(4))\n"
        "def test_it(instar, instar_namespace, n, worker_id):\n"
        "    body = {'metadata': {'name': 'same'}}\n"
        "    path = f'/api/v1/namespaces/{instar_namespace}/configmaps'\n"
        "    assert instar.request('POST', path, body).status == 201\n"
        "    print('SERVER', worker_id, instar.url)\n"
    )
    done = _pytest(_suite(tmp_path, code), "-n", "2", "-rP")

    assert done.returncode == 0, done.stdout
    assert len(set(re.findall(r"SERVER (gw\d https\S+)", done.stdout))) == 2


def test_a_suite_that_asks_for_nothing_loads_nothing(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "def test_it():\n"
        "    assert 'instar.testing.plugin' in sys.modules\n"
        "    assert 'instar.server' not in sys.modules\n"
        "    assert 'orjson' not in sys.modules\n"
        "    assert os.environ['KUBECONFIG'] == 'mine'\n"
    )
    done = _pytest(_suite(tmp_path, code), KUBECONFIG="mine")

    assert done.returncode == 0, done.stdout


def test_without_the_servers_packages_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("import sys\nsys.modules['uvloop'] = None\n")
    done = _pytest(_suite(tmp_path, "def test_it(instar): pass\n"))

    assert "pip install 'instar[server]'" in done.stdout


def test_clients_find_no_other_cluster(tmp_path: Path) -> None:
    """Not the user's, and not the one that a CI runner's pod lives in."""
    code = (
        "import os\n"
        "import kubernetes.config\n"
        "def test_it(instar):\n"
        "    assert os.environ['KUBECONFIG'] == str(instar.kubeconfig)\n"
        "    assert 'KUBERNETES_SERVICE_HOST' not in os.environ\n"
        "    kubernetes.config.load_config()\n"
        "    host = kubernetes.client.Configuration.get_default_copy().host\n"
        "    assert host == instar.url\n"
    )
    done = _pytest(
        _suite(tmp_path, code), KUBECONFIG="/nonexistent", KUBERNETES_SERVICE_HOST="10.0.0.1"
    )

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("how", ["option", "ini", "marker"])
def test_crds_are_installed_before_the_test(tmp_path: Path, how: str) -> None:
    shutil.copy(EXAMPLES / "crds.yaml", tmp_path)
    mark = "import pytest\npytestmark = pytest.mark.instar_crds('crds.yaml')\n"
    code = (
        "def test_it(instar):\n"
        "    path = '/apis/testing.example.com/v1/namespaces/default/crontabs'\n"
        "    assert instar.request('GET', path).status == 200\n"
    )
    if how == "ini":
        (tmp_path / "pytest.ini").write_text("[pytest]\ninstar_crds = crds.yaml\n")
    words = ["--instar-crds", "crds.yaml"] if how == "option" else []
    done = _pytest(_suite(tmp_path, (mark if how == "marker" else "") + code), *words)

    assert done.returncode == 0, done.stdout


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    done = _pytest(
        _suite(tmp_path, "def test_it(instar): pass\n"), "--instar-crds", "nothing-here.yaml"
    )

    assert done.returncode == 1
    assert "nothing-here.yaml" in done.stdout


def test_a_converter_is_served_to_the_server(tmp_path: Path) -> None:
    for name in ("crd.yaml", "crontab_conversion.py", "sample.yaml"):
        shutil.copy(ROOT / "examples" / "cron" / name, tmp_path)
    code = (
        "import pytest\n"
        "pytestmark = pytest.mark.instar_crds('crd.yaml')\n"
        "CRD = 'crontabs.stable.example.com'\n"
        "def test_it(instar, instar_namespace, instar_webhook):\n"
        "    hook = instar_webhook('crontab_conversion:crontab', crd=CRD)\n"
        "    [made] = instar.install('sample.yaml', namespace=instar_namespace)\n"
        "    name, where = made['metadata']['name'], made['metadata']['namespace']\n"
        "    base = f'/apis/stable.example.com/v2/namespaces/{where}/crontabs/{name}'\n"
        "    assert instar.request('GET', base).json['spec']['dayOfWeek']\n"
        "    assert hook.reviews\n"
        "    assert instar.request('DELETE', base).status == 200\n"
        "def test_afterwards_the_crd_is_as_before(instar):\n"
        "    crd = f'/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{CRD}'\n"
        "    conversion = instar.request('GET', crd).json['spec']['conversion']\n"
        "    assert '127.0.0.1' not in str(conversion)\n"
    )
    done = _pytest(_suite(tmp_path, code))

    assert done.returncode == 0, done.stdout


def test_an_admission_module_is_called_for_its_rules(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "crds.yaml", tmp_path)
    (tmp_path / "judging.py").write_text(
        "from instar.sdk import Admission, Refused\n"
        "judge = Admission('testing.example.com')\n"
        "@judge.validate('crontabs')\n"
        "def few_replicas(crontab):\n"
        "    if crontab['spec']['replicas'] > 3:\n"
        "        raise Refused('too many')\n"
    )
    code = (
        "import pytest\n"
        "pytestmark = pytest.mark.instar_crds('crds.yaml')\n"
        "def test_it(instar, instar_namespace, instar_webhook):\n"
        "    hook = instar_webhook('judging:judge')\n"
        "    path = f'/apis/testing.example.com/v1/namespaces/{instar_namespace}/crontabs'\n"
        "    def make(replicas):\n"
        "        body = {'apiVersion': 'testing.example.com/v1', 'kind': 'CronTab'}\n"
        "        body['metadata'] = {'name': f'with-{replicas}'}\n"
        "        body['spec'] = {'cronSpec': '*', 'replicas': replicas}\n"
        "        return instar.request('POST', path, body)\n"
        "    assert make(3).status == 201\n"
        "    assert make(4).status == 403\n"
        "    assert len(hook.reviews) == 2\n"
    )
    done = _pytest(_suite(tmp_path, code))

    assert done.returncode == 0, done.stdout


_FAILING = """
import kubernetes
import pytest
pytestmark = pytest.mark.instar_crds('crds.yaml')

def test_first(instar, instar_namespace):
    instar.request('GET', '/api/v1/namespaces/of-the-first-test')

def test_refused(instar, instar_namespace):
    crontab = {'apiVersion': 'testing.example.com/v1', 'kind': 'CronTab'}
    instar.install({**crontab, 'metadata': {'name': 'a'}, 'spec': {}})

def test_nothing_there(instar):
    path = '/apis/testing.example.com/v1/namespaces/default/'
    assert instar.request('GET', path + 'crontabs/b').status == 200

def test_of_no_crd(instar):
    path = '/apis/testing.example.com/v1/namespaces/default/'
    assert instar.request('GET', path + 'widgets/c').status == 200

def test_manifest_of_no_crd(instar):
    instar.install({'apiVersion': 'no.example.com/v1', 'kind': 'No', 'metadata': {'name': 'd'}})

def test_kind_of_no_crd(instar):
    instar.install({'apiVersion': 'testing.example.com/v1', 'kind': 'No', 'metadata': {}})

@pytest.mark.instar_crds('missing.yaml')
def test_missing_file(instar):
    pass

def test_repr(instar):
    print('REPR', instar, instar.token in repr(instar))
    assert False
"""


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The report of each test of a suite that fails in every way, by the test's name."""
    folder = tmp_path_factory.mktemp("failing")
    shutil.copy(EXAMPLES / "crds.yaml", folder)
    done = _pytest(_suite(folder, _FAILING), "-v")
    parts = re.split(r"^_{3,} (?:ERROR at setup of )?(test_\w+) _{3,}$", done.stdout, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_a_failure_shows_the_requests_of_its_test_with_code_and_reason(
    failing: dict[str, str],
) -> None:
    crontabs = "/apis/testing.example.com/v1/namespaces/default/crontabs"

    assert re.search(rf"^PATCH {crontabs}/a 422 Invalid: .*cronSpec", failing["test_refused"], re.M)
    assert re.search(rf"^GET {crontabs}/b 404 NotFound: ", failing["test_nothing_there"], re.M)
    assert "No installed CRD" not in failing["test_nothing_there"]
    assert "test_first" not in failing
    assert not any("of-the-first-test" in report for report in failing.values())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("test_of_no_crd", "No installed CRD serves widgets.testing.example.com"),
        ("test_manifest_of_no_crd", "no installed CRD serves a kind at no.example.com/v1"),
        ("test_kind_of_no_crd", "no installed CRD serves this kind at testing.example.com/v1"),
        ("test_missing_file", "missing.yaml: No such file or directory"),
    ],
)
def test_a_missing_crd_is_named(failing: dict[str, str], name: str, said: str) -> None:
    assert said in failing[name]


def test_a_failure_hides_the_frames_of_instar(failing: dict[str, str]) -> None:
    shown = "".join(failing.values())

    assert str(ROOT / "instar") not in shown
    assert "def test_refused" in failing["test_refused"]


def test_the_servers_repr_names_its_url_and_no_token(failing: dict[str, str]) -> None:
    told = r"REPR <instar Server https://127\.0\.0\.1:\d+, kubeconfig \S+> False"

    assert re.search(told, failing["test_repr"])


@pytest.mark.parametrize(("level", "seen"), [("", False), ("INFO", True)])
def test_access_records_reach_handlers_only_at_a_level_set_by_the_test(
    tmp_path: Path, level: str, seen: bool
) -> None:
    ask = f"    caplog.set_level('{level}', 'instar.access')\n" if level else ""
    code = (
        "def test_it(instar, caplog):\n"
        f"{ask}"
        "    instar.request('GET', '/version')\n"
        f"    assert any('/version' in each for each in caplog.messages) is {seen}\n"
    )

    done = _pytest(_suite(tmp_path, code))

    assert done.returncode == 0, done.stdout
