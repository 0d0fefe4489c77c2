"""How a webhook is found: url, service mappings, Service objects; in both CRD versions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from instar.base.json_values import Object
from tests.support.server import LiveServer, live_server
from tests.support.webhook import Webhook
from tests.webhooks.support import Widgets, convert


def _service(hook: Webhook, name: str, **more: object) -> Object:
    reference = {"namespace": "default", "name": name, "path": "/convert", **more}
    config = {"service": reference, "caBundle": hook.ca_bundle}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": config}
    return {"strategy": "Webhook", "webhook": webhook}


def _make_service(server: LiveServer, name: str, spec: Object) -> None:
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
    answer = server.request("POST", "/api/v1/namespaces/default/services", body)
    assert answer.status == 201, answer.text


@pytest.fixture
def service_hook() -> Iterator[Webhook]:
    """Its certificate is for a service's name alone."""
    with Webhook(convert, hosts=["converter.default.svc"]) as webhook:
        yield webhook


def test_a_mapping_says_where_and_the_certificate_still_names_the_service(
    service_hook: Webhook,
) -> None:
    mapping = f"default/converter=127.0.0.1:{service_hook.port}"
    with live_server(services=(mapping,)) as server:
        widgets = Widgets(server, _service(service_hook, "converter"))
        widgets.create("v1", "a", port=7)

        answer = widgets.get("v2", "a")

    assert answer.json["spec"]["hostPort"] == "h:7"
    [call] = service_hook.calls
    assert call.path == "/convert?timeout=30s"
    assert call.headers["Host"] == "converter.default.svc:443"


def test_a_mapping_of_one_port_leaves_others_alone(service_hook: Webhook) -> None:
    mapping = f"default/converter:8443=127.0.0.1:{service_hook.port}"
    with live_server(services=(mapping,), webhook_timeout=5) as server:
        mapped = Widgets(server, _service(service_hook, "converter", port=8443))
        other = Widgets(server, _service(service_hook, "converter", port=9443))
        for widgets in (mapped, other):
            widgets.create("v1", "a")

        assert mapped.get("v2", "a").status == 200
        refused = other.get("v2", "a")

    assert refused.status == 500
    assert "converter.default.svc" in refused.json["message"]


def test_an_external_name_of_our_own_store_is_dialled(
    server: LiveServer, service_hook: Webhook
) -> None:
    _make_service(server, "converter", {"type": "ExternalName", "externalName": "127.0.0.1"})
    widgets = Widgets(server, _service(service_hook, "converter", port=service_hook.port))
    widgets.create("v1", "a")

    assert widgets.get("v2", "a").json["spec"]["hostPort"] == "h:1"
    server.request("DELETE", "/api/v1/namespaces/default/services/converter")


def test_a_cluster_ip_of_our_own_store_is_dialled() -> None:
    with live_server(service_cluster_ip_range="127.0.0.0/24") as server:
        _dial_a_cluster_ip(server)


def _dial_a_cluster_ip(server: LiveServer) -> None:
    with Webhook(convert, hosts=["inside.default.svc"]) as hook:
        ports = [{"port": hook.port}]
        _make_service(server, "inside", {"clusterIP": "127.0.0.1", "ports": ports})
        widgets = Widgets(server, _service(hook, "inside", port=hook.port))
        wrong_port = Widgets(server, _service(hook, "inside", port=1))
        for one in (widgets, wrong_port):
            one.create("v1", "a")

        assert widgets.get("v2", "a").status == 200
        message = wrong_port.get("v2", "a").json["message"]

    assert 'no service port 1 found for service "inside"' in message


def test_the_certificate_of_a_service_must_carry_its_name(server: LiveServer) -> None:
    with Webhook(convert, hosts=["127.0.0.1"]) as hook:
        _make_service(server, "misnamed", {"type": "ExternalName", "externalName": "127.0.0.1"})
        widgets = Widgets(server, _service(hook, "misnamed", port=hook.port))
        widgets.create("v1", "a")

        message = widgets.get("v2", "a").json["message"]

    assert "x509" in message
    assert "misnamed.default.svc" in message


@pytest.mark.parametrize("review_versions", [["v1"], ["v1beta1"], ["v9", "v1beta1", "v1"]])
def test_the_first_review_version_we_know_is_spoken(
    review_versions: list[str], server: LiveServer, hook: Webhook
) -> None:
    widgets = Widgets(server, hook.conversion(review_versions))
    widgets.create("v1", "a")

    assert widgets.get("v2", "a").status == 200

    [call] = hook.calls
    spoken = next(version for version in review_versions if version != "v9")
    assert call.review["apiVersion"] == f"apiextensions.k8s.io/{spoken}"


def test_a_crd_of_v1beta1_has_its_webhook_called(server: LiveServer, hook: Webhook) -> None:
    fields = {"v1": ["host"], "v2": ["hostPort"]}
    old = {
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.old.example.com"},
        "spec": {
            "group": "old.example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "preserveUnknownFields": False,
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == "v1",
                    "schema": {"openAPIV3Schema": _schema(fields[name])},
                }
                for name in ("v1", "v2")
            ],
            "conversion": {
                "strategy": "Webhook",
                "conversionReviewVersions": ["v1beta1"],
                "webhookClientConfig": {"url": hook.url, "caBundle": hook.ca_bundle},
            },
        },
    }
    server.create_crd(old)
    kind = {"apiVersion": "old.example.com/v1", "kind": "Widget"}
    body = {**kind, "metadata": {"name": "a"}, "spec": {"host": "h"}}
    base = "/apis/old.example.com/{}/namespaces/default/widgets"
    assert server.request("POST", base.format("v1"), body).status == 201

    answer = server.request("GET", base.format("v2") + "/a")

    assert answer.json["spec"] == {"hostPort": "h:80"}
    assert hook.reviews == 1


def _schema(names: list[str]) -> Object:
    spec = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    return {"type": "object", "properties": {"spec": spec}}


def test_the_server_shows_its_client_certificate(tmp_path: Path) -> None:
    authority = trustme.CA()
    mine = authority.issue_cert("instar.example.com")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificate.write_bytes(b"".join(blob.bytes() for blob in mine.cert_chain_pems))
    key.write_bytes(mine.private_key_pem.bytes())
    with (
        Webhook(convert, client_authority=authority) as hook,
        live_server(webhook_client_cert=certificate, webhook_client_key=key) as known,
        live_server() as stranger,
    ):
        answers = []
        for server in (known, stranger):
            widgets = Widgets(server, hook.conversion())
            widgets.create("v1", "a")
            answers.append(widgets.get("v2", "a").status)

    assert answers == [200, 500]
