"""Whom the server believes, and what it shows of itself."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme

from instar.kube.api.crd import WebhookClient
from instar.wire.conversion.failure import FailureType
from instar.wire.webhooks.failure import CallFailed
from instar.wire.webhooks.https import ClientCertificate
from instar.wire.webhooks.transport import TransportSettings, WebhookTransport
from tests.conversion.helpers import causes, convert, failure, run, widget
from tests.support.webhook import Webhook

SOURCE = "example.com/v1, Kind=Widget"


def test_a_certificate_of_another_authority_is_not_trusted(hook: Webhook) -> None:
    conversion = hook.conversion()
    stranger = base64.b64encode(trustme.CA().cert_pem.bytes()).decode()
    conversion["webhook"]["clientConfig"]["caBundle"] = stranger

    with pytest.raises(Exception, match="x509") as caught:
        convert(conversion, [widget()])

    assert str(caught.value) == (
        f'conversion webhook for {SOURCE} failed: Post "{hook.url}?timeout=30s": tls: failed to '
        "verify certificate: x509: certificate signed by unknown authority"
    )


@pytest.mark.parametrize("blank", ["", "  \n", base64.b64encode(b" \n").decode()])
def test_a_blank_bundle_means_the_systems_authorities(hook: Webhook, blank: str) -> None:
    conversion = hook.conversion()
    conversion["webhook"]["clientConfig"]["caBundle"] = blank

    with pytest.raises(Exception, match="certificate signed by unknown authority"):
        convert(conversion, [widget()])


def test_an_unreadable_bundle_fails_conversions_only() -> None:
    async def scenario() -> None:
        client = WebhookClient(url="https://h/x", service=None, ca_bundle="bm90IFBFTQ==")
        await WebhookTransport(client, TransportSettings()).post(b"")

    with pytest.raises(CallFailed, match="unable to load root certificates"):
        run(scenario())


def test_a_certificate_for_another_name_is_refused() -> None:
    with Webhook(hosts=["other.example"]) as hook:
        failed = failure(hook)

    assert failed.message.endswith("certificate is valid for other names, not 127.0.0.1")
    assert causes(failed)["Advice"] == [
        "the webhook's certificate must carry 127.0.0.1 as a subject alternative name"
    ]


def test_the_bundle_may_be_the_servers_own_intermediate() -> None:
    root = trustme.CA()
    intermediate = root.create_child_ca()
    with Webhook(authority=intermediate) as hook:
        [converted] = convert(hook.conversion(), [widget()])

    assert converted["apiVersion"] == "example.com/v2"


def test_an_expired_certificate_is_reported_as_expired() -> None:
    with Webhook(expires=datetime(2020, 1, 1, tzinfo=UTC)) as hook:
        failed = failure(hook)

    assert failed.message.endswith("x509: certificate has expired or is not yet valid")


def test_a_server_without_tls_is_reported_as_one() -> None:
    with Webhook(plain_http=True) as hook:
        failed = failure(hook)

    assert failed.message.endswith("http: server gave HTTP response to HTTPS client")


def test_the_client_certificate_is_shown_to_a_webhook_that_asks(tmp_path: Path) -> None:
    clients = trustme.CA()
    issued = clients.issue_cert("apiserver@example.com")
    certificate = ClientCertificate(str(tmp_path / "crt"), str(tmp_path / "key"))
    issued.cert_chain_pems[0].write_to_path(certificate.certificate)
    issued.private_key_pem.write_to_path(certificate.key)
    with Webhook(client_authority=clients) as hook:
        refused = failure(hook)
        convert(
            hook.conversion(),
            [widget()],
            transport=TransportSettings(client_certificate=certificate),
        )

    assert refused.failure_type is FailureType.CALL
    assert causes(refused)["Advice"] != []
    assert hook.reviews == 1
