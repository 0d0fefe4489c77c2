"""Credentials of a kubeconfig beyond tokens: programs, impersonation, proxies; nothing is ignored
silently."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from instar.base.errors import Forbidden, Unauthorized
from instar.cli.main import main
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import KubeconfigError, load_access
from tests.support.server import LiveServer

V1 = "client.authentication.k8s.io/v1"
PROGRAM = """\
import json, os, pathlib, sys
calls = pathlib.Path(__file__).with_name("calls")
count = int(calls.read_text()) + 1 if calls.exists() else 1
calls.write_text(str(count))
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
pathlib.Path(__file__).with_name("asked").write_text(json.dumps(asked))
status = json.loads(os.environ["STATUS"])
tokens = os.environ.get("TOKENS", "").split()
if tokens:
    status["token"] = tokens[min(count, len(tokens)) - 1]
print(json.dumps({"apiVersion": asked["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


@pytest.fixture
def kubeconfig(server: LiveServer) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(server.kubeconfig.read_text())
    return config


def _write(folder: Path, config: dict[str, Any]) -> Path:
    path = folder / "config"
    path.write_text(json.dumps(config))
    return path


def _program(folder: Path, status: dict[str, Any], tokens: str = "", **more: Any) -> dict[str, Any]:
    (folder / "program.py").write_text(PROGRAM)
    env = [{"name": "STATUS", "value": json.dumps(status)}, {"name": "TOKENS", "value": tokens}]
    return {
        "apiVersion": V1,
        "command": sys.executable,
        "args": [str(folder / "program.py")],
        "env": env,
        **more,
    }


async def _get(path: Path, times: int = 1) -> None:
    async with Client(load_access(path)) as client:
        for _ in range(times):
            await client.get("/api/v1/namespaces")


def test_a_credential_plugin_runs_once_while_its_token_is_valid(
    server: LiveServer, kubeconfig: dict[str, Any], tmp_path: Path
) -> None:
    status = {"token": server.token, "expirationTimestamp": "2099-01-01T00:00:00Z"}
    kubeconfig["users"][0]["user"] = {"exec": _program(tmp_path, status, provideClusterInfo=True)}

    asyncio.run(_get(_write(tmp_path, kubeconfig), times=3))

    assert (tmp_path / "calls").read_text() == "1"
    asked = json.loads((tmp_path / "asked").read_text())
    assert asked["spec"]["cluster"]["server"] == server.url
    assert asked["spec"]["interactive"] is False


def test_a_credential_plugin_runs_again_when_its_token_has_expired(
    server: LiveServer, kubeconfig: dict[str, Any], tmp_path: Path
) -> None:
    status = {"token": server.token, "expirationTimestamp": "2020-01-01T00:00:00Z"}
    kubeconfig["users"][0]["user"] = {"exec": _program(tmp_path, status)}

    asyncio.run(_get(_write(tmp_path, kubeconfig), times=2))

    assert int((tmp_path / "calls").read_text()) >= 2


def test_a_credential_plugin_runs_again_after_a_401(
    server: LiveServer, kubeconfig: dict[str, Any], tmp_path: Path
) -> None:
    program = _program(tmp_path, {}, tokens=f"stale {server.token}")
    kubeconfig["users"][0]["user"] = {"exec": program}

    asyncio.run(_get(_write(tmp_path, kubeconfig)))

    assert (tmp_path / "calls").read_text() == "2"


def test_a_repeated_401_is_reported(kubeconfig: dict[str, Any], tmp_path: Path) -> None:
    kubeconfig["users"][0]["user"] = {"exec": _program(tmp_path, {"token": "never"})}

    with pytest.raises(Unauthorized):
        asyncio.run(_get(_write(tmp_path, kubeconfig)))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"command": "no-such-helper", "installHint": "Get it there."}, "Get it there."),
        ({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "v1alpha1"),
        ({"args": ["-c", "import sys; sys.exit('log in first')"]}, "log in first"),
        ({"args": ["-c", "print('secret')"]}, "printed no ExecCredential"),
        ({"interactiveMode": "Always"}, "no terminal"),
        ({"env": [{"name": "STATUS", "value": '{"clientKeyData": "x"}'}]}, "neither a token"),
    ],
)
def test_a_failing_credential_plugin_is_reported_with_its_user(
    kubeconfig: dict[str, Any], tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    program = {**_program(tmp_path, {"token": "t"}), **change}
    kubeconfig["users"][0]["user"] = {"exec": program}

    with pytest.raises(KubeconfigError) as refused:
        asyncio.run(_get(_write(tmp_path, kubeconfig)))

    assert told in str(refused.value)
    assert "secret" not in str(refused.value)
    assert str(tmp_path / "config") in str(refused.value)


def test_a_client_that_impersonates_has_the_identity_of_that_user(
    kubeconfig: dict[str, Any], tmp_path: Path
) -> None:
    kubeconfig["users"][0]["user"] |= {
        "as": "jane",
        "as-groups": ["a", "b"],
        "as-user-extra": {"example.com/team": ["x"]},
    }

    async def who() -> dict[str, Any]:
        async with Client(load_access(_write(tmp_path, kubeconfig))) as client:
            review: dict[str, Any] = await client.post(
                "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}
            )
            return dict(review["status"]["userInfo"])

    found = asyncio.run(who())
    assert (found["username"], found["groups"][:2]) == ("jane", ["a", "b"])
    assert found["extra"] == {"example.com/team": ["x"]}


def test_groups_to_act_in_without_a_user_are_refused(
    kubeconfig: dict[str, Any], tmp_path: Path
) -> None:
    kubeconfig["users"][0]["user"] |= {"as-groups": ["a"]}

    with pytest.raises(KubeconfigError, match="without as"):
        load_access(_write(tmp_path, kubeconfig))


def test_requests_go_through_the_proxy_of_the_cluster(
    server: LiveServer, kubeconfig: dict[str, Any], tmp_path: Path
) -> None:
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as proxy:

        def refuse() -> None:
            connection, _ = proxy.accept()
            with connection:
                asked.append(connection.recv(4096))
                connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=refuse, daemon=True)
        thread.start()
        kubeconfig["clusters"][0]["cluster"]["proxy-url"] = (
            f"http://127.0.0.1:{proxy.getsockname()[1]}"
        )
        with pytest.raises(Exception, match="403"):
            asyncio.run(_get(_write(tmp_path, kubeconfig)))
        thread.join(10)

    host = server.url.removeprefix("https://").encode()
    assert asked[0].startswith(b"CONNECT " + host)


def test_a_proxy_of_another_kind_is_refused(kubeconfig: dict[str, Any], tmp_path: Path) -> None:
    kubeconfig["clusters"][0]["cluster"]["proxy-url"] = "socks5://127.0.0.1:1"

    with pytest.raises(KubeconfigError, match="socks5"):
        load_access(_write(tmp_path, kubeconfig))


def test_a_refusal_names_server_user_and_kubeconfig(
    server: LiveServer,
    kubeconfig: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kubeconfig["users"][0]["user"] = {"token": "wrong"}
    path = _write(tmp_path, kubeconfig)

    assert main(["census", "--kubeconfig", str(path)]) == 1

    told = capsys.readouterr().err
    assert server.url in told
    assert "user 'instar-admin'" in told
    assert str(path) in told


def test_a_403_does_not_run_the_credential_plugin_again(
    server: LiveServer, kubeconfig: dict[str, Any], tmp_path: Path
) -> None:
    user = {"exec": _program(tmp_path, {"token": server.token}), "as": "nobody"}
    kubeconfig["users"][0]["user"] = user

    with pytest.raises(Forbidden):
        asyncio.run(_get(_write(tmp_path, kubeconfig)))

    assert (tmp_path / "calls").read_text() == "1"
