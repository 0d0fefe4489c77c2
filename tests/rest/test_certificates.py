"""Client certificates: of users, of front proxies, and the kubeconfigs a server writes."""

from __future__ import annotations

import http.client
import json
import ssl
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from instar.base.certificates import Authority, KeyPair
from instar.server.access.identities import FrontProxySettings, NewUser
from instar.wire.client.kubeconfig import read_kubeconfig
from tests.support.server import LiveServer, live_server

DAY = timedelta(days=1)
WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def ask(
    server: LiveServer, folder: Path, pair: KeyPair | None, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    context = ssl.create_default_context(cadata=server.running.ca.decode())
    if pair is not None:
        (folder / "c.crt").write_bytes(pair.cert)
        (folder / "c.key").write_bytes(pair.key)
        context.load_cert_chain(folder / "c.crt", folder / "c.key")
    parts = urlsplit(server.url)
    assert parts.hostname is not None
    connection = http.client.HTTPSConnection(parts.hostname, parts.port, context=context)
    try:
        connection.request(
            "POST", WHOAMI, "{}", {"Content-Type": "application/json", **(headers or {})}
        )
        answer = connection.getresponse()
        body = json.loads(answer.read())
    finally:
        connection.close()
    return answer.status, (body.get("status") or {}).get("userInfo") if answer.status == 201 else 0


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority.make("clients", DAY)
    (tmp_path / "clients.crt").write_bytes(made.pem.cert)
    return made


def test_a_certificate_names_user_and_groups(tmp_path: Path, authority: Authority) -> None:
    with live_server(client_ca=tmp_path / "clients.crt") as server:
        status, info = ask(server, tmp_path, authority.client("jane", ("devs", "ops"), DAY))
        assert (status, info["username"]) == (201, "jane")
        assert info["groups"] == ["devs", "ops", "system:authenticated"]
        [told] = info["extra"]["authentication.kubernetes.io/credential-id"]
        assert told.startswith("X509SHA256=")
        assert len(told) == len("X509SHA256=") + 64
        wrong = {"Authorization": "Bearer wrong"}
        status, info = ask(server, tmp_path, authority.client("jane", (), DAY), wrong)
        assert (status, info["username"]) == (201, "jane")


def test_a_strangers_or_servers_certificate_opens_nothing(
    tmp_path: Path, authority: Authority
) -> None:
    stranger = Authority.make("clients", DAY).client("jane", ("system:masters",), DAY)
    for_servers = authority.server("jane", ["x"], DAY)
    past = authority.client("jane", ("system:masters",), timedelta(seconds=-60))
    with live_server(client_ca=tmp_path / "clients.crt") as server:
        for pair in (stranger, for_servers, past):
            with pytest.raises((OSError, http.client.HTTPException)):
                ask(server, tmp_path, pair)


HEADERS = FrontProxySettings(
    ca=Path("proxy.crt"),
    names=("front",),
    user_headers=("X-Remote-User",),
    uid_headers=("X-Remote-Uid",),
    group_headers=("X-Remote-Group",),
    extra_prefixes=("X-Remote-Extra-",),
)
TOLD = {
    "X-Remote-User": "jane",
    "X-Remote-Uid": "u1",
    "X-Remote-Group": "devs",
    "X-Remote-Extra-Acme.com%2fTenant": "t1",
}


def test_a_front_proxy_is_trusted_by_its_certificate_only(
    tmp_path: Path, authority: Authority
) -> None:
    proxies = Authority.make("proxies", DAY)
    (tmp_path / "proxy.crt").write_bytes(proxies.pem.cert)
    front = FrontProxySettings(**{**vars(HEADERS), "ca": tmp_path / "proxy.crt"})
    with live_server(front_proxy=front, client_ca=tmp_path / "clients.crt") as server:
        status, info = ask(server, tmp_path, proxies.client("front", (), DAY), TOLD)
        assert (status, info) == (
            201,
            {
                "username": "jane",
                "uid": "u1",
                "groups": ["devs", "system:authenticated"],
                "extra": {"acme.com/tenant": ["t1"]},
            },
        )
        # A proxy's certificate is no user's, with whatever name; so is another of its authority.
        assert ask(server, tmp_path, proxies.client("front", ("system:masters",), DAY))[0] == 401
        other = proxies.client("other", ("system:masters",), DAY)
        assert ask(server, tmp_path, other, TOLD)[0] == 401
        assert ask(server, tmp_path, None, TOLD)[0] == 403
        # A client is a client, whatever its headers say.
        status, info = ask(server, tmp_path, authority.client("front", (), DAY), TOLD)
        assert (status, info["username"]) == (201, "front")


def test_a_front_proxy_with_the_client_ca_needs_allowed_names(
    tmp_path: Path, authority: Authority
) -> None:
    same = FrontProxySettings(ca=tmp_path / "clients.crt", user_headers=("X-Remote-User",))
    refused = pytest.raises(ValueError, match="allowed-names")
    with refused, live_server(front_proxy=same, client_ca=tmp_path / "clients.crt"):
        pass
    silent = FrontProxySettings(ca=tmp_path / "clients.crt")
    with pytest.raises(ValueError, match="username-headers"), live_server(front_proxy=silent):
        pass
    broken = tmp_path / "broken.crt"
    broken.write_text("rubbish")
    for settings in (
        {"client_ca": broken},
        {"client_ca": tmp_path / "missing"},
        {"front_proxy": FrontProxySettings(ca=broken, user_headers=("X",))},
    ):
        with pytest.raises(ValueError, match="client CA"), live_server(**settings):
            pass


def test_a_server_writes_kubeconfigs_for_its_users(tmp_path: Path) -> None:
    file = tmp_path / "jane.kubeconfig"
    with live_server(users=(NewUser("jane", ("devs", "system:x"), file),)) as server:
        assert file.stat().st_mode & 0o777 == 0o600
        assert read_kubeconfig([file]).server == server.url
        shown = json.loads(file.read_text())
        assert shown["users"][0]["name"] == "jane"
    long = NewUser("x" * 65, (), file)
    with pytest.raises(ValueError, match="65 characters"), live_server(users=(long,)):
        pass
