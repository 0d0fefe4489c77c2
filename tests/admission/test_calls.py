"""The way to a webhook: addresses, trust, time, what is counted and what the audit log hears."""

from __future__ import annotations

import base64
import json
import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from instar.server.http.messages import Request
from instar.server.registry.admission.webhooks.configured import Hooks
from tests.admission.conftest import widget_crd
from tests.admission.support import FAILED, asked, create, failed
from tests.rest.support import Collection
from tests.support.admission import (
    AdmissionHook,
    adding,
    allowing,
    configuration,
    configured,
    denying,
    patching,
)
from tests.support.faults import reply
from tests.support.server import LiveServer, live_server


@pytest.fixture(autouse=True)
def _nothing_is_left(place: LiveServer, widgets: Collection) -> Iterator[None]:
    yield
    widgets.request("DELETE")


def at(hook: AdmissionHook, **config: Any) -> Any:
    return {"clientConfig": {"caBundle": hook.ca_bundle, **config}, "timeoutSeconds": 5}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_a_refused_connection_has_gos_message_and_advice(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    port = free_port()
    with asked(place, hook, "Validating", **at(hook, url=f"https://127.0.0.1:{port}/v")):
        answer = create(widgets)

    url = f"https://127.0.0.1:{port}/v?timeout=5s"
    assert failed(answer) == (
        f'{FAILED}Post "{url}": dial tcp 127.0.0.1:{port}: connect: connection refused'
    )
    advice = answer.json["details"]["causes"][1]
    assert advice["reason"] == "Advice"
    assert "is the webhook running there?" in advice["message"]


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"url": "https://nosuch.invalid/v"}, "lookup nosuch.invalid: no such host"),
        (
            {"service": {"namespace": "default", "name": "nosvc", "path": "/x"}},
            'Post "https://nosvc.default.svc:443/x?timeout=5s": service "nosvc" not found',
        ),
    ],
)
def test_a_name_without_an_address_is_reported(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, config: Any, why: str
) -> None:
    with asked(place, hook, "Validating", **at(hook, **config)):
        assert why in failed(create(widgets))


def test_a_certificate_of_another_ca_is_not_trusted(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    with AdmissionHook() as other:
        bundle = other.ca_bundle
    url = f"https://127.0.0.1:{hook.port}/v"
    with asked(place, hook, "Validating", **at(hook, url=url, caBundle=bundle)):
        why = failed(create(widgets))

    assert why.endswith(
        "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    )


@pytest.mark.parametrize("bundle", [b"junk", b" \n"])
def test_a_bundle_without_a_certificate_is_not_called(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, bundle: bytes
) -> None:
    url = f"https://127.0.0.1:{hook.port}/v"
    encoded = base64.b64encode(bundle).decode()
    with asked(place, hook, "Validating", **at(hook, url=url, caBundle=encoded)):
        why = failed(create(widgets))

    assert why == (
        "could not get REST client: unable to load root certificates: "
        "unable to parse bytes as PEM block"
    )
    assert hook.calls == []


def test_the_bundle_may_be_the_very_certificate(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    leaf = ssl.get_server_certificate(("127.0.0.1", hook.port))
    url = f"https://127.0.0.1:{hook.port}/v"
    encoded = base64.b64encode(leaf.encode()).decode()
    with asked(place, hook, "Validating", **at(hook, url=url, caBundle=encoded)):
        assert create(widgets).status == 201


@pytest.mark.parametrize(
    ("path", "called"),
    [("/a/b/", "/a/b"), ("", "/"), ("//failing", "/failing"), ("/a//../b/./c/", "/b/c")],
)
def test_the_path_is_sent_cleaned(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, path: str, called: str
) -> None:
    url = f"https://127.0.0.1:{hook.port}{path}"
    with asked(place, hook, "Validating", **at(hook, url=url)):
        assert create(widgets).status == 201

    assert hook.order() == [called]


def test_a_service_is_called_by_its_name_where_a_mapping_says() -> None:
    name = "hook.default.svc"
    with AdmissionHook(hosts=[name]) as hook:
        mapping = f"default/hook=127.0.0.1:{hook.port}"
        with live_server(services=(mapping,)) as server:
            server.create_crd(widget_crd())
            widgets = Collection(server, "ref.io", "widgets", "Widget")
            service = {"namespace": "default", "name": "hook", "path": "/v", "port": 8443}
            with asked(server, hook, "Validating", **at(hook, service=service)):
                assert create(widgets).status == 201

        assert hook.order() == ["/v"]
        assert hook.calls[0].headers["Host"] == f"{name}:8443"


def test_a_webhook_may_ask_for_patience(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    answers = iter([503])

    def once(handler: Any, body: bytes) -> None:
        if next(answers, None) is not None:
            reply(handler, 503, b"later", "text/plain", Retry_After="1")
        else:
            AdmissionHook.handle(hook, handler, body)

    with asked(place, hook, "Validating"):
        hook.handle = once  # type: ignore[method-assign]
        try:
            answer = create(widgets)
        finally:
            del hook.handle

    assert answer.status == 201
    assert hook.order() == ["/v"]


# Numbers ------------------------------------------------------------------------------------------


def numbers(place: LiveServer) -> dict[str, float]:
    page = place.request("GET", "/metrics").text
    lines = (line.rpartition(" ") for line in page.splitlines() if "admission" in line)
    return {name: float(value) for name, _, value in lines if not name.startswith("#")}


def test_calls_are_counted_under_upstreams_names(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    webhook = hook.webhook("counted.ref.io", "/v")
    labels = 'name="counted.ref.io",type="validating",operation="CREATE"'
    with configured(place, configuration("Validating", webhook)):
        create(widgets, "one")
        hook.says["/v"] = lambda request: denying("no", code=403)
        create(widgets, "two")
        hook.says["/v"] = lambda request: "http_503"
        create(widgets, "three")
    ignoring = {**webhook, "failurePolicy": "Ignore"}
    with configured(place, configuration("Validating", ignoring)):
        create(widgets, "four")

    found = numbers(place)
    prefix = "apiserver_admission_webhook"
    assert found[f'{prefix}_request_total{{{labels},code="200",rejected="false"}}'] == 1
    assert found[f'{prefix}_request_total{{{labels},code="403",rejected="true"}}'] == 1
    assert found[f'{prefix}_request_total{{{labels},code="503",rejected="true"}}'] == 1
    assert found[f'{prefix}_request_total{{{labels},code="503",rejected="false"}}'] == 1
    rejected = f"{prefix}_rejection_count{{{labels}"
    assert found[f'{rejected},error_type="no_error",rejection_code="403"}}'] == 1
    assert found[f'{rejected},error_type="calling_webhook_error",rejection_code="503"}}'] == 1
    opened = f'{prefix}_fail_open_count{{name="counted.ref.io",type="validating"}}'
    assert found[opened] == 1
    seconds = f'{prefix}_admission_duration_seconds_count{{{labels},rejected="false"}}'
    assert found[seconds] == 2


# The audit log ------------------------------------------------------------------------------------


def told_to_audit(place: LiveServer, widgets: Collection) -> dict[str, str]:
    """What a creation tells the audit log: collected where its request keeps it."""
    told: dict[str, str] = {}
    original = Request.annotate

    def annotate(self: Request, key: str, value: str) -> None:
        told.setdefault(key, value)
        original(self, key, value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Request, "annotate", annotate)
        assert create(widgets, spec={"a": "x"}).status == 201
    return told


def test_audit_annotations_name_webhooks_that_changed_or_were_skipped(
    place: LiveServer, widgets: Collection, hook: AdmissionHook
) -> None:
    hook.says["/m"] = lambda request: patching(
        adding("/spec/n", 1), auditAnnotations={"why": "because", "not/valid": "x"}
    )
    hook.says["/down"] = lambda request: "http_500"
    mutating = configuration(
        "Mutating",
        hook.webhook("m.ref.io", "/m"),
        hook.webhook("n.ref.io", "/n"),
        hook.webhook("d.ref.io", "/down", failurePolicy="Ignore"),
    )
    validating = configuration(
        "Validating", hook.webhook("e.ref.io", "/down", failurePolicy="Ignore")
    )
    with configured(place, mutating, validating):
        told = told_to_audit(place, widgets)

    place_of = "webhook.admission.k8s.io/round_0_index_"
    who = {"configuration": "test", "webhook": "m.ref.io"}
    assert told["m.ref.io/why"] == "because"
    assert "m.ref.io/not/valid" not in told
    assert json.loads(told[f"mutation.{place_of}0"]) == {**who, "mutated": True}
    assert json.loads(told[f"mutation.{place_of}1"])["mutated"] is False
    patch = json.loads(told[f"patch.{place_of}0"])
    assert patch == {**who, "patch": [adding("/spec/n", 1)], "patchType": "JSONPatch"}
    assert told[f"failed-open.mutation.{place_of}2"] == "d.ref.io"
    assert told[f"failed-open.validating.{place_of}0"] == "e.ref.io"


def test_a_webhook_with_side_effects_refuses_dry_runs(
    place: LiveServer, widgets: Collection, hook: AdmissionHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only old configurations have such, which cannot be written any more."""
    original = Hooks.all

    def older(self: Hooks) -> Any:
        return tuple(
            replace(each, webhook=replace(each.webhook, dry_runs=False)) for each in original(self)
        )

    monkeypatch.setattr(Hooks, "all", older)
    hook.says["/v"] = lambda request: allowing()
    with asked(place, hook, "Validating", failurePolicy="Ignore"):
        dry = create(widgets, query="?dryRun=All")
        wet = create(widgets)

    assert dry.status == 400
    assert dry.json["message"] == 'admission webhook "v.ref.io" does not support dry run'
    assert dry.json["reason"] == "BadRequest"
    assert wet.status == 201
