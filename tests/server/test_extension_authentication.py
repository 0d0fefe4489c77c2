"""The ConfigMap that tells aggregated servers which clients and front proxies are trusted."""

from __future__ import annotations

from pathlib import Path

from instar.server.access.identities import FrontProxySettings
from instar.server.lifecycle.extension_authentication import authentication_data
from instar.server.settings import Settings


def test_without_a_front_proxy_only_the_client_ca_is_published(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.write_text("OURS\n")
    theirs.write_text("THEIRS\n")

    data = authentication_data(Settings(client_ca=theirs), ours)

    assert data == {"client-ca-file": "OURS\nTHEIRS\n"}


def test_a_front_proxy_is_published_with_ca_names_and_headers(tmp_path: Path) -> None:
    ours, proxies = tmp_path / "ours", tmp_path / "proxies"
    ours.write_text("OURS\n")
    proxies.write_text("PROXIES\n")
    proxy = FrontProxySettings(
        ca=proxies,
        names=("front-proxy-client",),
        user_headers=("X-Remote-User",),
        group_headers=("X-Remote-Group",),
        extra_prefixes=("X-Remote-Extra-",),
    )

    data = authentication_data(Settings(front_proxy=proxy), ours)

    assert data == {
        "client-ca-file": "OURS\n",
        "requestheader-client-ca-file": "PROXIES\n",
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }
