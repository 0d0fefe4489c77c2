from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme

from instar.sdk import ConversionError, Converter, ConverterDefinitionError, move
from instar.sdk.asgi import ConversionApp
from instar.tools.sdk.serving import TlsFiles, listen, parse_listen, serve

pytestmark = pytest.mark.anyio
JSON = {"Content-Type": "application/json"}


def _widget(kind: str = "Widget") -> Converter:
    widget = Converter(kind, group="example.com")
    widget.between("v1", "v2", rules=[move("a", "b")])

    @widget.convert("v3", "v1")
    def fail(obj: dict[str, Any]) -> dict[str, Any]:
        raise ConversionError("no way back")

    widget.convert("v1", "v3")(lambda obj: obj)
    return widget


def _obj(version: str = "v1", **rest: Any) -> dict[str, Any]:
    frame = {"apiVersion": f"example.com/{version}", "kind": "Widget"}
    return {**frame, "metadata": {"name": "w", "uid": "u"}, **rest}


def _review(*objects: Any, to: str = "v2", version: str = "v1") -> dict[str, Any]:
    return {
        "apiVersion": f"apiextensions.k8s.io/{version}",
        "kind": "ConversionReview",
        "request": {
            "uid": "r",
            "desiredAPIVersion": f"example.com/{to}",
            "objects": list(objects),
        },
    }


@asynccontextmanager
async def _served(
    app: ConversionApp, tls: TlsFiles | None = None, **options: Any
) -> AsyncIterator[tuple[int, asyncio.Event]]:
    sock = listen("127.0.0.1", 0)
    stop, ready = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(serve(app, sock, tls, stop=stop, started=ready.set, **options))
    await asyncio.wait({task, asyncio.create_task(ready.wait())}, return_when="FIRST_COMPLETED")
    try:
        yield sock.getsockname()[1], stop
    finally:
        stop.set()
        await task


async def _fetch(
    session: aiohttp.ClientSession, method: str, url: str, **options: Any
) -> tuple[int, str]:
    async with session.request(method, url, **options) as response:
        return response.status, await response.text()


async def _post(app: ConversionApp, body: Any, headers: dict[str, str] = JSON) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with _served(app) as (port, _), aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{port}/any/path"
        async with session.post(url, data=data, headers=headers) as response:
            return response.status, await response.json()


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_review_is_answered_in_its_own_version(version: str) -> None:
    review = _review(_obj(a=1), _obj("v2", b=2), version=version)

    code, answer = await _post(ConversionApp(_widget()), review)

    assert code == 200
    assert answer == {
        "apiVersion": f"apiextensions.k8s.io/{version}",
        "kind": "ConversionReview",
        "response": {
            "uid": "r",
            "result": {"status": "Success"},
            "convertedObjects": [_obj("v2", b=1), _obj("v2", b=2)],
        },
    }


async def test_a_large_review_takes_the_worker_thread_and_keeps_order() -> None:
    objects = [_obj(a=number, pad="x" * 1000) for number in range(200)]

    _, answer = await _post(ConversionApp(_widget()), _review(*objects))

    assert [obj["b"] for obj in answer["response"]["convertedObjects"]] == list(range(200))


@pytest.mark.parametrize(
    ("review", "message"),
    [
        (_review(_obj("v3"), to="v1"), "w: no way back"),
        (_review(_obj(), to="v9"), "'example.com/v9' is not a version of Widget.example.com"),
        (_review({**_obj(), "kind": "Gadget"}), "this webhook converts Widget.example.com, not"),
        (_review(_obj(), {**_obj(), "kind": "Gadget"}), "expected objects of kind Widget"),
        (_review("text"), "not (no kind).example.com"),
        (_review(_obj("v7")), "cannot convert Widget from version 'example.com/v7'"),
        (_review({**_obj(), "metadata": 3}), "without metadata"),
    ],
)
async def test_an_inconvertible_object_is_a_failed_review(review: Any, message: str) -> None:
    code, answer = await _post(ConversionApp(_widget()), review)

    assert code == 200
    assert answer["response"]["uid"] == "r"
    assert answer["response"]["result"]["status"] == "Failure"
    assert message in answer["response"]["result"]["message"]


@pytest.mark.parametrize(
    ("body", "headers", "code", "message"),
    [
        (b"{", JSON, 400, "json parse error"),
        (b"[]", JSON, 400, "json parse error"),
        (b"", JSON, 400, "no body"),
        (b'{"kind": "Pod"}', JSON, 400, "expected a ConversionReview"),
        (_review(_obj()) | {"request": None}, JSON, 400, "no request"),
        (b"{}", {"Content-Type": "text/plain"}, 415, "application/json"),
        (b"x" * 2000, JSON, 413, "limit is 1000 bytes"),
    ],
)
async def test_a_body_that_is_not_a_review_is_an_http_error_with_a_status(
    body: Any, headers: dict[str, str], code: int, message: str
) -> None:
    got, answer = await _post(ConversionApp(_widget(), max_body=1000), body, headers)

    assert (got, answer["kind"], answer["code"]) == (code, "Status", code)
    assert message in answer["message"]


async def test_a_crash_is_logged_with_the_name_and_without_the_content(
    caplog: pytest.LogCaptureFixture,
) -> None:
    widget = Converter("Widget", group="example.com")
    widget.convert("v1", "v2")(lambda obj: {"b": int(obj["a"])})
    widget.convert("v2", "v1")(lambda obj: obj)

    _, answer = await _post(ConversionApp(widget), _review(_obj(a="hunter2")))

    assert "w: the converter failed with ValueError at test_webhook.py" in caplog.text
    assert "hunter2" not in caplog.text + json.dumps(answer)


async def test_a_chunked_body_over_the_limit_is_cut_off() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b"x" * 400

    app = ConversionApp(_widget(), max_body=1000)
    async with _served(app) as (port, _), aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{port}/"
        async with session.post(url, data=chunks(), headers=JSON) as response:
            assert response.status == 413


async def test_pages_beside_reviews() -> None:
    app = ConversionApp([_widget()])
    async with _served(app) as (port, _), aiohttp.ClientSession() as session:
        base = f"http://127.0.0.1:{port}"
        await _fetch(session, "POST", f"{base}/convert", json=_review(_obj(a=1)))
        await _fetch(session, "POST", f"{base}/convert", json=_review(_obj("v3"), to="v1"))
        _, health = await _fetch(session, "GET", f"{base}/healthz")
        _, metrics = await _fetch(session, "GET", f"{base}/metrics")
        nothing, _ = await _fetch(session, "GET", f"{base}/convert")
        put, _ = await _fetch(session, "PUT", f"{base}/convert")

    labels = 'kind="Widget",from_version="v1",to_version="v2",result="success"'
    assert f"instar_webhook_reviews_total{{{labels}}} 1" in metrics
    assert 'kind="Widget",from_version="v3",to_version="v1",result="failure"} 1' in metrics
    assert (health, nothing, put) == ("ok", 404, 405)


async def test_several_kinds_share_one_endpoint_and_twins_are_refused() -> None:
    _, answer = await _post(ConversionApp([_widget("Other"), _widget()]), _review(_obj(a=1)))

    assert answer["response"]["convertedObjects"] == [_obj("v2", b=1)]
    with pytest.raises(ConverterDefinitionError, match="two converters"):
        ConversionApp([_widget(), _widget()])


async def test_mounted_under_a_prefix_health_still_answers() -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/crd/healthz", "root_path": "/crd"}
    await ConversionApp(_widget())({**scope, "headers": []}, receive, send)

    assert [sent[0]["status"], sent[1]["body"]] == [200, b"ok"]


def _issue(authority: trustme.CA, folder: Path, name: str = "127.0.0.1") -> TlsFiles:
    issued = authority.issue_cert(name)
    cert, key = folder / "tls.crt", folder / "tls.key"
    cert.write_bytes(issued.cert_chain_pems[0].bytes())
    key.write_bytes(issued.private_key_pem.bytes())
    return TlsFiles(cert=cert, key=key)


async def _get(port: int, trust: ssl.SSLContext) -> int:
    async with aiohttp.ClientSession() as session:
        status, _ = await _fetch(session, "GET", f"https://127.0.0.1:{port}/healthz", ssl=trust)
        return status


def _trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def test_mutual_tls_admits_only_clients_of_the_authority(tmp_path: Path) -> None:
    servers, clients = trustme.CA(), trustme.CA()
    files = _issue(servers, tmp_path)
    clients.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    tls = TlsFiles(cert=files.cert, key=files.key, client_ca=tmp_path / "ca.crt")
    known, stranger = _trusting(servers), _trusting(servers)
    clients.issue_cert("apiserver").configure_cert(known)

    async with _served(ConversionApp(_widget()), tls) as (port, _):
        accepted = await _get(port, known)
        with pytest.raises((aiohttp.ClientError, ConnectionError)):
            await _get(port, stranger)

    assert accepted == 200


async def test_a_new_certificate_is_used_without_restart(tmp_path: Path) -> None:
    first, second = trustme.CA(), trustme.CA()
    tls = _issue(first, tmp_path)

    async with _served(ConversionApp(_widget()), tls, reload_every=0.01) as (port, _):
        before = await _get(port, _trusting(first))
        _issue(second, tmp_path)
        after = await _eventually(port, _trusting(second))

    assert (before, after) == (200, 200)


async def _eventually(port: int, trust: ssl.SSLContext) -> int:
    async with asyncio.timeout(10):
        while True:
            try:
                return await _get(port, trust)
            except aiohttp.ClientConnectorCertificateError:
                await asyncio.sleep(0.01)


async def test_a_request_in_flight_finishes_while_stopping() -> None:
    released = asyncio.Event()

    async def slow_body() -> AsyncIterator[bytes]:
        body = json.dumps(_review(_obj(a=1))).encode()
        yield body[:10]
        await released.wait()
        yield body[10:]

    app = ConversionApp(_widget())
    async with _served(app, drain=0.2) as (port, stop), aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{port}/"
        request = asyncio.create_task(_fetch(session, "POST", url, data=slow_body(), headers=JSON))
        metrics = ""
        while "in_flight 1\n" not in metrics:
            _, metrics = await _fetch(session, "GET", f"{url}metrics")
        stop.set()
        async with asyncio.timeout(5):
            while (await _fetch(session, "GET", f"{url}readyz"))[0] == 200:
                pass
        released.set()
        _, text = await request

    assert json.loads(text)["response"]["result"]["status"] == "Success"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":9443", ("", 9443)),
        ("[::1]:0", ("::1", 0)),
        ("127.0.0.1:80", ("127.0.0.1", 80)),
    ],
)
def test_listen_addresses(text: str, expected: tuple[str, int]) -> None:
    assert parse_listen(text) == expected


@pytest.mark.parametrize("text", ["9443", "host:", ":99999", ":x"])
def test_wrong_listen_addresses(text: str) -> None:
    with pytest.raises(ValueError, match="not an address"):
        parse_listen(text)


def test_answers_are_not_held_back_for_the_acknowledgement_of_headers() -> None:
    with listen("127.0.0.1", 0) as sock:
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
