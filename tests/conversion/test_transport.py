"""Reaching a webhook: addresses, deadlines, retries, connections, and too many callers."""

from __future__ import annotations

import asyncio
import socket

import pytest

from instar.base.errors import TooManyRequests
from instar.base.json_values import Object
from instar.kube.api.crd import ServiceReference, WebhookClient
from instar.wire.conversion.factory import converter_for
from instar.wire.conversion.failure import ConversionFailed
from instar.wire.webhooks import transport as transport_module
from instar.wire.webhooks.failure import CallFailed
from instar.wire.webhooks.resolver import HostPort, ServiceKey, ServiceResolver
from instar.wire.webhooks.transport import (
    TransportPool,
    TransportSettings,
    WebhookTransport,
    go_duration,
    webhook_address,
)
from tests.conversion.helpers import (
    V2,
    convert,
    crd_with,
    failure,
    run,
    services,
    widget,
)
from tests.support.webhook import Webhook

SOURCE = "example.com/v1, Kind=Widget"
REVIEW = b'{"apiVersion":"","kind":"","request":{"uid":"","desiredAPIVersion":"","objects":[]}}'


def client_of(hook: Webhook) -> WebhookClient:
    return WebhookClient(url=hook.url, service=None, ca_bundle=hook.ca_bundle)


def service_conversion(
    hook: Webhook, name: str = "converter", port: int = 443
) -> dict[str, object]:
    service = {"namespace": "default", "name": name, "path": "/c", "port": port}
    config = {"service": service, "caBundle": hook.ca_bundle}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": config}
    return {"strategy": "Webhook", "webhook": webhook}


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_refused_connection_is_reported_with_the_address(hook: Webhook) -> None:
    conversion = hook.conversion()
    port = closed_port()
    conversion["webhook"]["clientConfig"]["url"] = f"https://127.0.0.1:{port}/x"

    with pytest.raises(Exception, match="refused") as caught:
        convert(conversion, [widget()])

    assert str(caught.value) == (
        f'conversion webhook for {SOURCE} failed: Post "https://127.0.0.1:{port}/x?timeout=30s": '
        f"dial tcp 127.0.0.1:{port}: connect: connection refused"
    )


def test_a_service_is_dialled_at_its_mapping_and_verified_by_its_name() -> None:
    with Webhook(hosts=["converter.default.svc"]) as hook:
        mapping = {ServiceKey("default", "converter", None): HostPort("127.0.0.1", hook.port)}
        settings = TransportSettings(resolver=ServiceResolver(mapping))

        convert(service_conversion(hook), [widget()], transport=settings)

    [call] = hook.calls
    assert call.headers["Host"] == "converter.default.svc:443"
    assert call.path == "/c?timeout=30s"


def test_a_service_whose_certificate_has_another_name_is_refused() -> None:
    with Webhook(hosts=["127.0.0.1"]) as hook:
        mapping = {ServiceKey("default", "converter", None): HostPort("127.0.0.1", hook.port)}
        settings = TransportSettings(resolver=ServiceResolver(mapping))

        with pytest.raises(Exception, match=r"not converter\.default\.svc$"):
            convert(service_conversion(hook), [widget()], transport=settings)


def test_a_refused_service_is_reported_with_the_address_dialled(hook: Webhook) -> None:
    port = closed_port()
    mapping = {ServiceKey("default", "converter", 443): HostPort("127.0.0.1", port)}

    with pytest.raises(Exception, match="refused") as caught:
        convert(
            service_conversion(hook),
            [widget()],
            transport=TransportSettings(resolver=ServiceResolver(mapping)),
        )

    assert str(caught.value).endswith(
        'Post "https://converter.default.svc:443/c?timeout=30s": '
        f"dial tcp 127.0.0.1:{port}: connect: connection refused"
    )


def test_an_unknown_service_is_not_found(hook: Webhook) -> None:
    with pytest.raises(Exception, match="nosvc") as caught:
        convert(service_conversion(hook, "nosvc"), [widget()])

    assert str(caught.value).endswith(
        'Post "https://nosvc.default.svc:443/c?timeout=30s": service "nosvc" not found'
    )


def test_an_unknown_host_is_named_in_the_error(hook: Webhook) -> None:
    conversion = hook.conversion()
    conversion["webhook"]["clientConfig"]["url"] = "https://nohost.invalid/x"

    with pytest.raises(Exception, match=r"dial tcp: lookup nohost\.invalid: no such host$"):
        convert(conversion, [widget()], transport=TransportSettings(proxies=False))


def test_a_hanging_webhook_runs_into_the_deadline(hook: Webhook) -> None:
    hook.pause()

    failed = failure(hook, timeout=0.2)

    assert failed.timed_out
    assert failed.message == (
        f"conversion webhook for {SOURCE} failed: "
        f'Post "{hook.url}?timeout=200ms": context deadline exceeded'
    )


def test_the_deadline_of_a_crd_wins_over_the_general_one(hook: Webhook) -> None:
    convert(hook.conversion(), [widget()], timeouts={"widgets.example.com": 90})

    assert hook.calls[0].path == "/convert?timeout=1m30s"


def test_a_webhook_that_asks_for_another_try_gets_it(hook: Webhook) -> None:
    hook.retry_after = ["0", "0"]

    convert(hook.conversion(), [widget()])

    assert hook.reviews == 3


def test_a_wait_beyond_the_deadline_is_not_begun(hook: Webhook) -> None:
    hook.retry_after = ["3600"]

    failed = failure(hook)

    assert failed.message.endswith("the server is currently unable to handle the request")
    assert hook.reviews == 1


def test_a_webhook_that_always_asks_again_is_given_up(hook: Webhook) -> None:
    hook.retry_after = ["0"] * 50

    failure(hook)

    assert hook.reviews == 11
    hook.retry_after = []


def test_writers_given_up_together_are_not_tried_again_one_by_one(hook: Webhook) -> None:
    hook.retry_after = ["3600"]

    async def scenario() -> list[list[Object] | BaseException]:
        async with services() as made:
            converter = converter_for(crd_with(hook.conversion()), made)
            asking = [converter.convert([widget(name)], V2) for name in ("a", "b")]
            return await asyncio.gather(*asking, return_exceptions=True)

    assert [type(told) for told in run(scenario())] == [ConversionFailed] * 2
    assert hook.reviews == 1


@pytest.mark.parametrize("when", ["soon", "1.5", "-1", ""])
def test_only_a_whole_number_of_seconds_is_a_request_to_retry(hook: Webhook, when: str) -> None:
    hook.retry_after = [when]

    failure(hook)

    assert hook.reviews == 1


def test_connections_are_kept_between_calls(hook: Webhook) -> None:
    before = hook.connections

    async def scenario() -> None:
        pool = TransportPool()
        for _ in range(5):
            await pool.transport_for(client_of(hook)).post(REVIEW)
        await pool.close()

    run(scenario())

    assert hook.connections - before == 1


def test_a_kept_connection_that_died_does_not_fail_the_call(hook: Webhook) -> None:
    async def scenario() -> None:
        transport = WebhookTransport(client_of(hook), TransportSettings())
        await transport.post(REVIEW)
        hook.close_connections()
        await transport.post(REVIEW)
        await transport.close()

    run(scenario())

    assert hook.reviews == 2


def test_a_transport_that_was_closed_opens_again(hook: Webhook) -> None:
    async def scenario() -> None:
        transport = WebhookTransport(client_of(hook), TransportSettings())
        await transport.post(REVIEW)
        await transport.close()
        await transport.post(REVIEW)
        await transport.close()

    run(scenario())

    assert hook.reviews == 2


def test_crds_with_the_same_configuration_share_a_transport(
    hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_module, "MOST_TRANSPORTS", 2)

    async def scenario() -> None:
        pool = TransportPool()
        first = pool.transport_for(client_of(hook))
        assert pool.transport_for(client_of(hook)) is first
        for port in (1, 2):
            pool.transport_for(WebhookClient(f"https://127.0.0.1:{port}/", None, ""))
        assert pool.transport_for(client_of(hook)) is not first
        await pool.close()

    run(scenario())


def test_a_cancelled_caller_hangs_up(hook: Webhook) -> None:
    hook.pause()

    async def scenario() -> bool:
        transport = WebhookTransport(client_of(hook), TransportSettings())
        call = asyncio.create_task(transport.post(REVIEW))
        await asyncio.to_thread(hook.wait_for_calls, 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        idle = transport.idle
        await transport.close()
        return idle

    assert run(scenario())


def test_a_hanging_webhook_cannot_pile_requests_up(hook: Webhook) -> None:
    hook.pause()
    settings = TransportSettings(calls_at_once=2, calls_waiting=3)

    async def scenario() -> list[object]:
        transport = WebhookTransport(client_of(hook), settings)
        calls = [asyncio.create_task(transport.post(REVIEW)) for _ in range(7)]
        await asyncio.to_thread(hook.wait_for_calls, 2)
        turned_away = [call.exception() for call in calls if call.done()]
        arrived = hook.reviews
        hook.resume()
        await asyncio.gather(*calls, return_exceptions=True)
        await transport.close()
        return [*turned_away, arrived]

    first, second, arrived = run(scenario())

    assert isinstance(first, TooManyRequests)
    assert isinstance(second, TooManyRequests)
    assert first.retry_after == 1
    assert "2 are running and 3 are waiting" in first.message
    assert arrived == 2
    assert hook.reviews == 5


def test_waiting_for_a_turn_counts_towards_the_deadline(hook: Webhook) -> None:
    hook.pause()

    async def scenario() -> None:
        transport = WebhookTransport(client_of(hook), TransportSettings(calls_at_once=1))
        holder = asyncio.create_task(transport.post(REVIEW))
        await asyncio.to_thread(hook.wait_for_calls, 1)
        with pytest.raises(CallFailed, match="context deadline exceeded"):
            await transport.post(REVIEW, seconds=0.05)
        hook.resume()
        await holder
        await transport.close()

    run(scenario())

    assert hook.reviews == 1


@pytest.mark.parametrize(
    ("client", "address"),
    [
        (WebhookClient("https://h.example", None), "https://h.example/"),
        (WebhookClient("https://h.example:8443/a/b", None), "https://h.example:8443/a/b"),
        (WebhookClient("https://h.example:1//convert", None), "https://h.example:1/convert"),
        (WebhookClient("https://h.example/a//../b/./c/", None), "https://h.example/b/c"),
        (WebhookClient("https://h.example/../..", None), "https://h.example/"),
        (WebhookClient("https://h.example/a%2Fb%20c/é", None), "https://h.example/a/b%20c/%C3%A9"),
        (WebhookClient(None, ServiceReference("ns", "s")), "https://s.ns.svc:443/"),
        (WebhookClient(None, ServiceReference("ns", "s", "/p", 8443)), "https://s.ns.svc:8443/p"),
    ],
)
def test_the_address_of_a_webhook(client: WebhookClient, address: str) -> None:
    assert webhook_address(client) == address


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(30, "30s"), (90, "1m30s"), (60, "1m0s"), (3600, "1h0m0s"), (0.5, "500ms"), (1.5, "1.5s")],
)
def test_durations_are_printed_as_go_prints_them(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text


def test_a_webhook_elsewhere_is_called_through_the_proxy(
    hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = closed_port()
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("NO_PROXY", "")

    async def scenario() -> None:
        async with services() as made:
            client = WebhookClient("https://elsewhere.invalid/x", None)
            with pytest.raises(CallFailed, match=f"proxyconnect tcp: dial tcp 127.0.0.1:{port}"):
                await made.transports.transport_for(client).post(REVIEW)
            await made.transports.transport_for(client_of(hook)).post(REVIEW)

    run(scenario())

    assert hook.reviews == 1
