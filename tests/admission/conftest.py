"""One server and one webhook for the module; a resource with two versions and defaults."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from instar.base.json_values import Object
from tests.rest.support import Collection
from tests.support import crds
from tests.support.admission import AdmissionHook
from tests.support.server import LiveServer, live_server
from tests.support.storages import Storages, chosen_engine


def _schema(**fields: Object) -> Object:
    spec = {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "n": {"type": "integer"},
            "m": {"type": "object", "additionalProperties": {"type": "string"}},
            "replicas": {"type": "integer"},
            **fields,
        },
    }
    status = {
        "type": "object",
        "properties": {"s": {"type": "string"}, "replicas": {"type": "integer"}},
    }
    return crds.fields(spec=spec, status=status)


SUBRESOURCES = {
    "status": {},
    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
}


def widget_crd() -> Object:
    one = _schema(d={"type": "string", "default": "one"})
    two = _schema(d={"type": "string", "default": "two"}, only2={"type": "string"})
    return crds.crd(
        crds.version("v1", one, subresources=SUBRESOURCES),
        crds.version("v2", two, subresources=SUBRESOURCES),
        group="ref.io",
        plural="widgets",
        kind="Widget",
    )


@pytest.fixture(scope="module")
def place(storages: Storages) -> Iterator[LiveServer]:
    """A server of the module's own: configurations are everybody's."""
    storage = storages.empty(chosen_engine())
    with live_server(storage=storage, collect_garbage=False) as server:
        server.create_crd(widget_crd())
        yield server


@pytest.fixture(scope="module")
def widgets(place: LiveServer) -> Collection:
    return Collection(place, "ref.io", "widgets", "Widget")


@pytest.fixture(scope="module")
def _running_hook() -> Iterator[AdmissionHook]:
    with AdmissionHook() as hook:
        yield hook


@pytest.fixture
def hook(_running_hook: AdmissionHook) -> Iterator[AdmissionHook]:
    _running_hook.reset()
    yield _running_hook
    _running_hook.resume()
