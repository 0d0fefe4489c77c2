"""The requests that are counted per operation: in instructions by ``bench.instructions`` and in
function calls by ``tests/counts``.

Each operation runs on its own ``Stage``: a server with one CRD and a few objects, called through a
``Wire``.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bench.fixtures import BASE, CRDS, GROUP, OTHER, crd, thing
from bench.wire import Wire, wires
from instar.server.lifecycle.lifetime import RunningServer, running
from instar.server.settings import Settings

OBJECTS = 120
WATCHERS = 20
_CONVERTED = "converteds"
CONVERTED = f"/apis/{GROUP}/v1beta1/namespaces/default/{_CONVERTED}"
_STORED = f"/apis/{GROUP}/v1/namespaces/default/{_CONVERTED}"
_MERGE, _APPLY = "application/merge-patch+json", "application/apply-patch+yaml"

Step = Callable[[int], Awaitable[object]]
"""Makes the n-th request of an operation and takes its answer."""


@dataclass(frozen=True)
class Stage:
    server: RunningServer
    wire: Wire
    watchers: list[Wire]
    names: list[str]
    converted: list[str]


@dataclass(frozen=True)
class Operation:
    what: str
    """One line for people."""
    prepare: Callable[[Stage], Awaitable[Step]]


@contextlib.asynccontextmanager
async def stage(storage: str = "memory:") -> AsyncIterator[Stage]:
    settings = Settings(
        port=0,
        storage=storage,
        converters={f"{_CONVERTED}.{GROUP}": _convert},
        convert_ahead=False,  # nothing may run that no request asked for
        bootstrap_objects=False,
    )
    async with running(settings) as server:
        wire, *watchers = wires(server, 1 + WATCHERS)
        await wire.get("POST", CRDS, _json(crd()))
        await wire.get("POST", CRDS, _json(_converted_crd()))
        names = [await _created(wire, BASE, thing()) for _ in range(OBJECTS)]
        label = _json({"metadata": {"labels": {"rare": "yes"}}})
        await wire.get("PATCH", f"{BASE}/{names[7]}", label, _MERGE)
        converted = [await _created(wire, _STORED, thing(kind="Converted")) for _ in range(10)]
        for name in converted:
            await wire.get("GET", f"{CONVERTED}/{name}")
        yield Stage(server, wire, watchers, names, converted)


async def _get(on: Stage) -> Step:
    return _repeat_request(on, on.wire.request("GET", f"{BASE}/{on.names[3]}"))


async def _get_other(on: Stage) -> Step:
    return _repeat_request(on, on.wire.request("GET", f"{OTHER}/{on.names[3]}"))


async def _get_converted(on: Stage) -> Step:
    return _repeat_request(on, on.wire.request("GET", f"{CONVERTED}/{on.converted[3]}"))


async def _page(on: Stage) -> Step:
    return _repeat_request(on, on.wire.request("GET", f"{BASE}?limit=100"))


async def _filtered(on: Stage) -> Step:
    return _repeat_request(on, on.wire.request("GET", f"{BASE}?labelSelector=rare%3Dyes"))


async def _create(on: Stage) -> Step:
    return _repeat_request(on, on.wire.request("POST", BASE, _json(thing())))


async def _merge_patch(on: Stage) -> Step:
    def asked(step: int) -> bytes:
        patch = b'{"metadata":{"annotations":{"example.com/seq":"%06d"}}}' % step
        return on.wire.request("PATCH", f"{BASE}/{on.names[5]}", patch, _MERGE)

    return _make_request(on, asked)


async def _apply(on: Stage) -> Step:
    def asked(step: int) -> bytes:
        wanted = thing()
        wanted["metadata"] = {"name": "applied", "labels": {"app": "bench"}}
        wanted["spec"]["replicas"] = 1 + step % 900
        path = f"{BASE}/applied?fieldManager=bench&force=true"
        return on.wire.request("PATCH", path, _json(wanted), _APPLY)

    return _make_request(on, asked)


async def _watched_patch(on: Stage) -> Step:
    listed = json.loads(await on.wire.get("GET", f"{BASE}?limit=1"))
    for each in on.watchers:
        revision = listed["metadata"]["resourceVersion"]
        await each.watch(f"{BASE}?watch=true&resourceVersion={revision}")
    patched = await _merge_patch(on)

    async def step(number: int) -> None:
        await patched(number)
        for each in on.watchers:
            await each.event()

    return step


OPERATIONS: Mapping[str, Operation] = {
    "get": Operation("one object as it is stored", _get),
    "get, other version": Operation("one object, only its apiVersion differs", _get_other),
    "get, converted": Operation("one object that was converted before", _get_converted),
    "list 100": Operation("a page of 100 objects", _page),
    "list by label": Operation(f"the one of {OBJECTS} objects that has a label", _filtered),
    "create": Operation("an object of 1.4 kB", _create),
    "merge patch": Operation("one annotation of it", _merge_patch),
    "apply": Operation("server-side apply of the whole object, one field changed", _apply),
    "patch, watched": Operation(f"the merge patch with {WATCHERS} watchers", _watched_patch),
}


def _repeat_request(on: Stage, request: bytes) -> Step:
    return lambda step: on.wire.ask(request)


def _make_request(on: Stage, asked: Callable[[int], bytes]) -> Step:
    return lambda step: on.wire.ask(asked(step))


async def _created(wire: Wire, path: str, obj: dict[str, Any]) -> str:
    answer = json.loads(await wire.get("POST", path, _json(obj)))
    return str(answer["metadata"]["name"])


def _converted_crd() -> dict[str, Any]:
    made = crd(_CONVERTED, "Converted")
    client = {"url": "https://nobody.invalid/"}
    made["spec"]["conversion"] = {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client},
    }
    return made


def _convert(objects: list[dict[str, Any]], version: str) -> list[dict[str, Any]]:
    return [{**obj, "apiVersion": version} for obj in objects]


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
