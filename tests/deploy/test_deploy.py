"""What is deployed, as kubectl renders it: a server takes it without a warning, its pods are
restricted, and its command lines are ones we have."""

from __future__ import annotations

import json
import re
import shlex
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from instar.cli.main import main, parser_of
from tests.deploy.rendering import BASES, DEPLOY, ROOT, container, needs_kubectl, rendered, workload
from tests.support.corpus import CORPUS
from tests.support.kubectl import Kubectl, kubectls
from tests.support.server import LiveServer, live_server
from tests.support.shared import demand_shared

FLUX = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kustomizations.kustomize.toolkit.fluxcd.io}
spec:
  group: kustomize.toolkit.fluxcd.io
  scope: Namespaced
  names: {plural: kustomizations, kind: Kustomization}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [interval, prune, sourceRef]
            properties:
              dependsOn: {type: array, items: {type: object, properties: {name: {type: string}}}}
              force: {type: boolean}
              interval: {type: string}
              path: {type: string}
              prune: {type: boolean}
              sourceRef:
                type: object
                required: [kind, name]
                properties: {kind: {type: string}, name: {type: string}}
              timeout: {type: string}
              wait: {type: boolean}
"""
"""Those of its fields that we use, as Flux documents them."""


@pytest.fixture(scope="module")
def cluster() -> Any:
    with live_server(bootstrap_objects=True) as server:
        server.install(yaml.safe_load(FLUX))
        if CORPUS.is_dir():
            for name in ("certificates", "issuers"):
                server.install(CORPUS / "cert-manager" / "v1.21.0" / f"cert-manager.io_{name}.yaml")
            source = CORPUS / "flux-source" / "v1.7.0"
            server.install(source / "source.toolkit.fluxcd.io_gitrepositories.yaml")
        yield server


def _applied(server: LiveServer, text: str, home: Path) -> None:
    needs_kubectl()
    objects = list(yaml.safe_load_all(text))
    named = {each["metadata"].get("namespace", "default") for each in objects}
    for namespace in sorted(named - {"default"} or named):
        chosen = [
            each for each in objects if each["metadata"].get("namespace", namespace) == namespace
        ]
        kubectl = Kubectl(kubectls()[0], (1, 0), server, home, namespace)
        given = yaml.safe_dump_all(chosen)
        ran = kubectl.run("apply", "--validate=strict", "-f", "-", given=given)
        assert ran.code == 0, ran.text
        assert "Warning" not in ran.err


@pytest.mark.parametrize("base", BASES)
def test_a_server_takes_every_base_as_it_is(base: str, cluster: LiveServer, tmp_path: Path) -> None:
    if "cert-manager" in str(rendered(base)):
        demand_shared(CORPUS)

    _applied(cluster, yaml.safe_dump_all(rendered(base)), tmp_path)


def test_a_server_takes_the_objects_of_flux(cluster: LiveServer, tmp_path: Path) -> None:
    demand_shared(CORPUS)
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": "flux-system"}})

    _applied(cluster, (DEPLOY / "flux" / "release.yaml").read_text(), tmp_path)


def test_flux_reads_folders_that_are_here() -> None:
    documents = list(yaml.safe_load_all((DEPLOY / "flux" / "release.yaml").read_text()))
    paths = {each["spec"].get("path") for each in documents} - {None, "./deploy/operator"}

    assert paths == {"./deploy/upgrade", "./deploy/migrate"}
    assert all((ROOT / path / "kustomization.yaml").is_file() for path in paths)


@pytest.mark.parametrize("base", BASES)
def test_workloads_are_restricted(base: str) -> None:
    pod = workload(base)["spec"]["template"]["spec"]
    context = container(base)["securityContext"]

    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert context["readOnlyRootFilesystem"]
    assert not context["allowPrivilegeEscalation"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    asks_the_cluster = base in ("in-cluster", "migrate", "upgrade")
    assert pod.get("automountServiceAccountToken", True) == asks_the_cluster


@pytest.mark.parametrize("base", BASES)
def test_containers_run_command_lines_that_we_have(base: str) -> None:
    run = container(base)
    words = run["args"] if "args" in run else run["command"][1:]

    parser_of(words[0]).parse_args(words[1:])  # leaves the process at what it does not know


def test_workloads_without_api_access_have_no_roles() -> None:
    with_roles = {base for base in BASES if any("Role" in each["kind"] for each in rendered(base))}

    assert with_roles == {"in-cluster", "migrate", "upgrade"}


PRINTED = {
    "deploy/conversion-webhook/webhook.yaml": "webhook /rules/conversion.yaml --image instar",
    "deploy/upgrade/job.yaml": "upgrade --config-map crds --image instar deploy/upgrade/crds.yaml",
    "examples/cron/webhook.yaml": "webhook crontab_conversion:crontab --name crontab-conversion "
    "--image registry.example.com/crontab-conversion:1",
    "examples/hostport/webhook.yaml": "webhook /etc/instar/conversion.yaml "
    "--name example-conversion-webhook-server --image registry.example.com/instar:1",
}


@pytest.mark.parametrize("file", PRINTED)
def test_printed_command_output_in_the_docs_is_real(
    file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)

    assert main([*PRINTED[file].split(), "--manifests"]) == 0

    assert capsys.readouterr().out == (ROOT / file).read_text()


def test_the_control_plane_starts_with_its_own_command_line(tmp_path: Path) -> None:
    """With paths and port that are free here."""
    words = [word.replace("/data/", f"{tmp_path}/") for word in container("control-plane")["args"]]
    words = ["--listen=127.0.0.1:0" if word.startswith("--listen") else word for word in words]
    with subprocess.Popen(
        [sys.executable, "-m", "instar", *words], cwd=ROOT, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            logged = map(json.loads, process.stderr)
            assert any("instar is ready" in line["msg"] for line in logged)
            config = json.loads((tmp_path / "kubeconfig").read_text())
            server = config["clusters"][0]["cluster"]["server"]
            unverified = ssl._create_unverified_context()
            with urllib.request.urlopen(f"{server}/readyz", context=unverified) as answer:
                assert answer.status == 200
            assert (tmp_path / "instar.db").is_file()
        finally:
            process.terminate()


def test_the_image_runs_a_command_that_exists() -> None:
    text = (ROOT / "Dockerfile").read_text()
    [command] = re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)

    words = json.loads(command)
    parser_of(words[0]).parse_args(words[1:])
    assert shlex.split(re.findall(r"^USER (.*)$", text, re.MULTILINE)[0]) == ["65532:65532"]
