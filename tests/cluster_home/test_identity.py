"""Who asks, behind the aggregation layer of a main cluster."""

from __future__ import annotations

from datetime import timedelta

from instar.base.certificates import Authority, KeyPair
from tests.support.main_cluster import GROUP, REPORTS, Aggregated

_DAY = timedelta(days=1)
_MASTER = (("X-Remote-User", "admin"), ("X-Remote-Group", "system:masters"))


def test_the_proxy_of_the_main_cluster_names_the_user(both: Aggregated) -> None:
    answer = both.proxied("GET", REPORTS)

    assert answer.status == 200, answer.text


def test_a_name_that_the_main_cluster_does_not_allow_is_unauthorized(both: Aggregated) -> None:
    other = both.proxies.client("evil", (), _DAY)

    answer = both.as_peer(other, "GET", REPORTS, None, _MASTER)

    assert answer.status == 401


def test_the_proxy_itself_is_no_user(both: Aggregated) -> None:
    proxy = both.proxies.client("aggregator", (), _DAY)

    answer = both.as_peer(proxy, "GET", REPORTS)

    assert answer.status == 401


def test_headers_without_a_certificate_are_ignored(both: Aggregated) -> None:
    answer = both.served.request("GET", REPORTS, headers=dict(_MASTER), token=None)

    assert answer.status == 403
    assert 'User "system:anonymous"' in answer.text or "system:anonymous" in answer.text


def test_a_certificate_of_the_main_clusters_client_ca_names_its_user(both: Aggregated) -> None:
    folder = both.folder / "main"
    authority = Authority(
        KeyPair((folder / "ca.crt").read_bytes(), (folder / "ca.key").read_bytes())
    )
    joe = authority.client("joe", ("system:masters",), _DAY)

    answer = both.as_peer(joe, "GET", REPORTS)

    assert answer.status == 200


def test_a_token_of_the_main_cluster_is_reviewed_there(both: Aggregated) -> None:
    account = {"metadata": {"name": "reader", "namespace": "default"}}
    both.create("/api/v1/namespaces/default/serviceaccounts", account)
    path = "/api/v1/namespaces/default/serviceaccounts/reader/token"
    token = both.create(path, {"spec": {}})["status"]["token"]

    answer = both.served.request("GET", REPORTS, token=token)

    assert answer.status == 403
    assert "system:serviceaccount:default:reader" in answer.text


def test_a_token_that_the_main_cluster_does_not_know_is_unauthorized(both: Aggregated) -> None:
    answer = both.served.request("GET", REPORTS, token="forged")

    assert answer.status == 401


def test_extra_keys_are_decoded_and_reach_the_main_clusters_decision(both: Aggregated) -> None:
    headers = (("X-Remote-Extra-Scopes%2fa", "b"),)

    answer = both.proxied("GET", REPORTS, user="joe", groups=(), headers=headers)

    assert answer.status == 403


def test_health_needs_no_credentials(both: Aggregated) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        assert both.served.request("GET", path, token=None).status == 200


def test_answers_to_the_proxy_leave_its_own_headers_to_it(both: Aggregated) -> None:
    answer = both.proxied("GET", f"/apis/{GROUP}/v1")

    names = {name.lower() for name, _ in answer.headers}
    assert not names & {
        "audit-id",
        "cache-control",
        "x-kubernetes-pf-flowschema-uid",
        "x-kubernetes-pf-prioritylevel-uid",
    }


def test_direct_answers_have_them(both: Aggregated) -> None:
    answer = both.served.request("GET", f"/apis/{GROUP}/v1")

    assert answer.header("audit-id") is not None
    assert answer.header("cache-control") == "no-cache, private"
