"""Certificates and headers of the aggregation layer are followed; flags take precedence."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from instar.base.certificates import Authority
from instar.server.access.identities import FrontProxySettings
from instar.server.cluster_home.authentication_data import read_authentication
from instar.server.cluster_home.trust import trusting
from instar.server.settings import ClusterSettings, Settings
from tests.support.main_cluster import REPORTS, Aggregated, aggregated
from tests.support.server import live_server
from tests.support.waiting import eventually

_DAY = timedelta(days=1)
_MAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"


def test_another_ca_of_proxies_is_used_without_a_restart(tmp_path: Path) -> None:
    with aggregated(tmp_path) as both:
        other = Authority.make("another-front-proxy-ca", _DAY)
        changed = {"data": {"requestheader-client-ca-file": other.pem.cert.decode()}}
        both.main.request("PATCH", _MAP, changed, content_type="application/merge-patch+json")

        renewed = both._replace(proxies=other)

        eventually(lambda: _status(renewed) == 200)
        assert _status(both) != 200


def _status(both: Aggregated) -> int:
    try:
        return both.proxied("GET", REPORTS).status
    except OSError:
        return 0  # TLS refuses the certificate of an unknown CA


def test_a_flag_takes_precedence_over_the_config_map(tmp_path: Path) -> None:
    own = FrontProxySettings(ca=tmp_path / "own.crt", user_headers=("X-User",))
    settings = Settings(client_ca=tmp_path / "clients.crt", front_proxy=own)
    told = read_authentication(
        {
            "data": {
                "client-ca-file": "CLIENTS",
                "requestheader-client-ca-file": "PROXIES",
                "requestheader-username-headers": '["X-Remote-User"]',
            }
        }
    )

    assert trusting(settings, told, tmp_path / "pki") == settings


def test_a_config_map_without_proxies_trusts_none(tmp_path: Path) -> None:
    told = read_authentication({"data": {"client-ca-file": "CLIENTS"}})

    found = trusting(Settings(), told, tmp_path)

    assert found.front_proxy is None
    assert found.client_ca is not None
    assert found.client_ca.read_text() == "CLIENTS"


def test_no_allowed_names_means_every_name_of_the_ca(tmp_path: Path) -> None:
    told = read_authentication(
        {
            "data": {
                "requestheader-client-ca-file": "PROXIES",
                "requestheader-username-headers": '["X-Remote-User"]',
                "requestheader-allowed-names": "[]",
            }
        }
    )

    found = trusting(Settings(), told, tmp_path).front_proxy

    assert found is not None
    assert found.names == ()


@pytest.mark.parametrize("text", ["aggregator", '{"a": 1}', "[1]"])
def test_names_that_are_no_list_of_texts_are_an_error(text: str) -> None:
    data = {
        "requestheader-client-ca-file": "PROXIES",
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-allowed-names": text,
    }

    with pytest.raises(ValueError, match="requestheader-allowed-names is not a JSON list"):
        read_authentication({"data": data})


def test_a_main_cluster_that_cannot_be_reached_is_named_at_the_start(tmp_path: Path) -> None:
    with aggregated(tmp_path) as both:
        kubeconfig = tmp_path / "gone.kubeconfig"
        kubeconfig.write_text(
            both.main.kubeconfig.read_text().replace(both.main.url, "https://127.0.0.1:1")
        )

    joined = ClusterSettings(kubeconfig=str(kubeconfig))
    with (
        pytest.raises(ValueError, match="cannot read ConfigMap kube-system/extension-apiserver"),
        live_server(cluster=joined, cert_dir=tmp_path / "alone"),
    ):
        pass
