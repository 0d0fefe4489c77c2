"""Claims of node ports: what servers of one store tell each other before they store Services."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import orjson

from instar.server.registry.admission.plugins.node_port_claims import (
    RECORD,
    NodePort,
    NodePortClaims,
    PortClaim,
)
from instar.wire.storage.memory import MemoryStore

_PORT, _OTHER = NodePort("TCP", 30080), NodePort("TCP", 30081)


def _never(claim: PortClaim) -> bool:
    return False


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def test_a_port_is_claimed_by_one_service_at_a_time() -> None:
    async def work() -> list[dict[NodePort, str]]:
        store = MemoryStore()
        one, other = NodePortClaims(store), NodePortClaims(store)
        return [
            await one.take([_PORT], "a/x", _never),
            await other.take([_OTHER, _PORT], "a/y", _never),
            await other.take([_PORT], "a/x", _never),
            await one.take([_OTHER], "a/z", _never),
        ]

    taken, refused, again, unclaimed = _run(work())

    assert refused == {_PORT: "a/x"}
    assert taken == again == unclaimed == {}, "a refused request claims nothing"


def test_many_servers_at_once_claim_different_ports() -> None:
    async def work() -> list[str]:
        store = MemoryStore()
        jobs = [NodePortClaims(store).take([_PORT], f"a/{at}", _never) for at in range(20)]
        outcomes = await asyncio.gather(*jobs)
        return [f"a/{at}" for at, refused in enumerate(outcomes) if not refused]

    assert len(_run(work())) == 1


def test_a_claim_ends_after_a_minute() -> None:
    now = [1000.0]

    async def work() -> list[dict[NodePort, str]]:
        claims = NodePortClaims(MemoryStore(), lambda: now[0])
        await claims.take([_PORT], "a/x", _never)
        outcomes = []
        for seconds in (59, 2):
            now[0] += seconds
            outcomes.append(await claims.take([_PORT], "a/y", _never))
        return outcomes

    assert _run(work()) == [{_PORT: "a/x"}, {}]


def test_a_claim_ends_when_it_is_given_back_or_its_service_has_gone() -> None:
    async def work() -> list[dict[NodePort, str]]:
        store = MemoryStore()
        claims = NodePortClaims(store)
        await claims.take([_PORT], "a/x", _never)
        await claims.give_back([_PORT], "a/other")
        kept = await claims.take([_PORT], "a/y", _never)
        await claims.give_back([_PORT], "a/x")
        free = await claims.take([_PORT], "a/y", _never)
        gone = await claims.take([_PORT], "a/z", lambda claim: claim.owner == "a/y")
        record = await store.get(RECORD)
        assert record is not None
        [only] = orjson.loads(record.value)["claims"]
        assert only[1] == "a/z"
        return [kept, free, gone]

    assert _run(work()) == [{_PORT: "a/x"}, {}, {}]
