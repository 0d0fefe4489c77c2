"""Access with a real kubectl: plain users with certificates and tokens, and instar's own tools."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from instar.server.access.identities import NewUser
from tests.support.kubectl import MISSING, PATIENCE, kubectls
from tests.support.server import LiveServer, live_server

pytestmark = pytest.mark.skipif(not kubectls(), reason=MISSING)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LiveServer, Path]]:
    folder = tmp_path_factory.mktemp("users")
    users = tuple(
        NewUser(name, groups, folder / name)
        for name, groups in (("jane", ("devs",)), ("joe", ()), ("imp", ()))
    )
    with live_server(users=users, bootstrap_objects=True) as server:
        yield server, folder


def run(*command: str, stdin: str = "") -> tuple[int, str]:
    ran = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    return ran.returncode, ran.stdout + ran.stderr


def kubectl(config: Path, *arguments: str, stdin: str = "") -> tuple[int, str]:
    return run(kubectls()[0], "--kubeconfig", str(config), *arguments, stdin=stdin)


def instar(config: Path, *arguments: str) -> tuple[int, str]:
    command = (sys.executable, "-m", "instar", "access", *arguments, "--kubeconfig", str(config))
    return run(*command)


def test_a_user_comes_from_its_certificate_and_has_the_rights_of_its_bindings(
    house: tuple[LiveServer, Path],
) -> None:
    server, folder = house
    jane, admin = folder / "jane", server.kubeconfig
    _, shown = kubectl(jane, "auth", "whoami", "-o", "yaml")
    assert yaml.safe_load(shown)["status"]["userInfo"]["groups"] == ["devs", "system:authenticated"]
    code, text = kubectl(jane, "get", "configmaps")
    assert (code, 'User "jane" cannot list resource "configmaps"' in text) == (1, True)
    assert kubectl(jane, "auth", "can-i", "list", "configmaps")[1].startswith("no")
    made = kubectl(admin, "create", "rolebinding", "v", "--clusterrole=view", "--group=devs")
    assert made[0] == 0, made
    assert kubectl(jane, "get", "configmaps")[0] == 0
    assert kubectl(jane, "auth", "can-i", "list", "configmaps") == (0, "yes\n")
    assert kubectl(jane, "auth", "can-i", "list", "secrets")[0] == 1
    _, listed = kubectl(jane, "auth", "can-i", "--list")
    assert "endpointslices.discovery.k8s.io" in listed
    as_jane = kubectl(
        admin, "auth", "can-i", "list", "configmaps", "--as=x", "--as-group=devs", "-n", "default"
    )
    assert as_jane == (0, "yes\n")
    assert "cannot impersonate-on:user-info:list" in kubectl(jane, "get", "pods", "--as=joe")[1]


def test_reconcile_adds_missing_rules(house: tuple[LiveServer, Path], tmp_path: Path) -> None:
    admin = house[0].kubeconfig
    file = tmp_path / "role.yaml"
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "rec"},
        "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
    }
    file.write_text(yaml.safe_dump(role))
    assert kubectl(admin, "auth", "reconcile", "-f", str(file))[0] == 0
    role["rules"] = [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}]
    file.write_text(yaml.safe_dump(role))
    code, text = kubectl(admin, "auth", "reconcile", "-f", str(file))
    assert (code, "missing rules added" in text) == (0, True)


def test_an_accounts_token_is_the_accounts(house: tuple[LiveServer, Path]) -> None:
    admin = house[0].kubeconfig
    code, token = kubectl(admin, "create", "token", "default", "--audience=vault")
    assert code == 0
    code, token = kubectl(admin, "create", "token", "default", "--duration=1h")
    text = kubectl(admin, "auth", "whoami", "-o", "yaml", f"--token={token.strip()}")[1]
    info = yaml.safe_load(text)["status"]["userInfo"]
    assert info["username"] == "system:serviceaccount:default:default"


def test_recorded_roles_suffice_for_another_user(
    house: tuple[LiveServer, Path],
) -> None:
    server, folder = house
    admin, jane, joe = server.kubeconfig, folder / "jane", folder / "joe"
    kubectl(admin, "create", "rolebinding", "e", "--clusterrole=edit", "--user=jane")
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\n"

    def work(config: Path) -> list[int]:
        return [
            kubectl(config, "apply", "--server-side", "-f", "-", stdin=manifest)[0],
            kubectl(config, "get", "configmaps")[0],
            kubectl(config, "delete", "configmap", "mine")[0],
        ]

    assert work(jane) == [0, 0, 0]
    assert work(joe) == [1, 1, 1]
    code, roles = instar(admin, "record", "jane", "--for", "joe", "--name", "learnt")
    assert code == 0, roles
    assert kubectl(admin, "apply", "-f", "-", stdin=roles)[0] == 0
    assert work(joe) == [0, 0, 0]
    assert kubectl(joe, "get", "secrets")[0] == 1


def test_explain_names_the_rule_or_the_missing_permission(house: tuple[LiveServer, Path]) -> None:
    admin = house[0].kubeconfig
    kubectl(admin, "create", "clusterrole", "pods", "--verb=get", "--resource=pods")
    kubectl(admin, "create", "clusterrolebinding", "pods", "--clusterrole=pods", "--user=zoe")
    code, text = instar(admin, "explain", "zoe", "get", "pods", "-n", "default")
    assert (code, 'ClusterRoleBinding "pods" binds User zoe' in text) == (0, True)
    code, text = instar(admin, "explain", "zoe", "delete", "pods", "-n", "default")
    assert (code, "does not cover the verb delete" in text) == (1, True)
    code, text = instar(admin, "explain", "system:serviceaccount:a:b", "get", "/openid/v1/jwks")
    assert (code, "system:service-account-issuer-discovery" in text) == (0, True)
    code, text = instar(admin, "record", "nobody-ever")
    assert code == 1
    assert text == ("instar access: the record holds no request of nobody-ever that needs a role\n")
