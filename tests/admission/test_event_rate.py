"""EventRateLimit: so many events, in upstream's words beyond."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from instar.server.lifecycle.admission_config import event_limits
from instar.server.registry.admission.plugin_names import HERE
from instar.server.registry.admission.plugins.event_rate_limit import (
    BadLimits,
    EventLimit,
    _Buckets,
    read_limits,
)
from tests.support.server import Answer, LiveServer, live_server

EVENTS = "/api/v1/namespaces/{}/events"


def configuration(*limits: dict[str, Any]) -> dict[str, Any]:
    head = {"apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration"}
    return {**head, "limits": list(limits)}


def write(folder: Path, document: Any) -> Path:
    path = folder / "admission.yaml"
    plugins = [{"name": "EventRateLimit", "configuration": document}]
    head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration"}
    path.write_text(json.dumps({**head, "plugins": plugins}))
    return path


def report(server: LiveServer, name: str, namespace: str = "default") -> Answer:
    about = {"kind": "Pod", "name": "p", "namespace": namespace}
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": about,
        "reason": "Seen",
        "type": "Normal",
    }
    return server.request("POST", EVENTS.format(namespace), body)


def test_events_beyond_the_limit_of_a_namespace_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, configuration({"type": "Namespace", "qps": 1, "burst": 2}))
    with live_server(admission_plugins=HERE | {"EventRateLimit"}, admission_config=path) as server:
        answers = [report(server, f"e{number}") for number in range(4)]
        elsewhere = report(server, "e", "kube-system")
        other = server.request(
            "POST",
            "/api/v1/namespaces/default/configmaps",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
        )

    refused = [answer for answer in answers if answer.status != 201]
    assert len(refused) in (1, 2)  # a token may have come back meanwhile
    assert refused[0].status == 429
    assert refused[0].json["reason"] == "TooManyRequests"
    told = "Too many requests: limit reached on type Namespace for key default"
    assert refused[0].json["message"] == told
    assert (elsewhere.status, other.status) == (201, 201)


def test_tokens_are_refilled_and_the_least_recently_used_buckets_are_dropped() -> None:
    now = [0.0]
    buckets = _Buckets(EventLimit("User", qps=2, burst=2, remembered=2), lambda: now[0])

    spent = [buckets.take("ann") for _ in range(3)]
    now[0] = 0.5
    back = [buckets.take("ann") for _ in range(2)]
    for name in ("bob", "cid"):
        buckets.take(name)

    assert spent == [True, True, False]
    assert back == [True, False]
    assert buckets.take("ann")


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (None, "no EventRateLimit config specified"),
        (configuration(), "limits: Invalid value: []: must not be empty"),
        (
            configuration({"type": "Server", "qps": 0, "burst": 1}),
            "limits[0].qps: Invalid value: 0: must be positive",
        ),
        (
            configuration({"type": "Pod", "qps": 1, "burst": 1}),
            'limits[0].type: Unsupported value: "Pod": supported values: "Namespace", "Server", '
            '"SourceAndObject", "User"',
        ),
        (
            configuration({"type": "Server", "qps": 1, "burst": 1, "x": 1}),
            'strict decoding error: unknown field "limits[0].x"',
        ),
        ({"limits": []}, "expected eventratelimit.admission.k8s.io/v1alpha1, Configuration"),
        (configuration("x"), "limits[0]: an object was expected"),  # type: ignore[arg-type]
    ],
)
def test_each_mistake_has_its_words(document: Any, told: str) -> None:
    with pytest.raises(BadLimits) as caught:
        read_limits(document)

    assert str(caught.value) == told


def test_the_plugins_document_may_be_a_file_of_its_own(tmp_path: Path) -> None:
    limits = configuration({"type": "Server", "qps": 5, "burst": 10})
    (tmp_path / "events.yaml").write_text(json.dumps(limits))
    path = tmp_path / "admission.yaml"
    path.write_text(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"
        "plugins: [{name: EventRateLimit, path: events.yaml}]\n"
    )

    assert event_limits(path) == (EventLimit("Server", 5, 10),)
    with pytest.raises(ValueError, match="no EventRateLimit config specified"):
        event_limits(None)
