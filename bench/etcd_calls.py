"""``python -m bench.etcd_calls``: compares the caller's CPU time of our etcd client and of grpcio,
in alternating rounds.

Runs one member of Debian's etcd. Measures transactions that create 1.4 kB, and the read that
concurrent consistent reads of the server share.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable

import grpc.aio
import uvloop

from bench.process import etcd
from instar.wire.rpc.channel import GrpcChannel
from instar.wire.storage.etcd import messages as wire

_CALLS = 3200
_ROUNDS = 5
_PATIENCE = 20.0
_TXN, _RANGE = "/etcdserverpb.KV/Txn", "/etcdserverpb.KV/Range"
_numbers = itertools.count()

Call = Callable[[str, bytes], Awaitable[bytes]]


def _create() -> tuple[str, bytes]:
    return _TXN, wire.swap_request(b"/bench/%d" % next(_numbers), b"x" * 1400, 0)


def _barrier() -> tuple[str, bytes]:
    return _RANGE, wire.range_request(b"/bench/", count_only=True)


async def _cpu(call: Call, ask: Callable[[], tuple[str, bytes]], at_once: int) -> float:
    """Return the microseconds of CPU of this process per call."""

    async def some() -> None:
        for _ in range(_CALLS // at_once):
            await call(*ask())

    before = time.process_time()
    await asyncio.gather(*(some() for _ in range(at_once)))
    return (time.process_time() - before) / _CALLS * 1e6


async def _measure(address: str) -> None:
    ours, theirs = GrpcChannel(address), grpc.aio.insecure_channel(address)

    async def by_us(method: str, request: bytes) -> bytes:
        return await ours.call(method, request, _PATIENCE)

    async def by_grpcio(method: str, request: bytes) -> bytes:
        made: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = theirs.unary_unary(method)
        return await made(request, timeout=_PATIENCE, wait_for_ready=True)

    await by_grpcio(*_barrier())
    print(f"{'µs of CPU a call':20} {'at once':>8} {'ours':>8} {'grpcio':>8}")
    for name, ask in (("create", _create), ("barrier", _barrier)):
        for at_once in (32, 1):
            best = [float("inf")] * 2
            for _ in range(_ROUNDS):
                now = [await _cpu(call, ask, at_once) for call in (by_us, by_grpcio)]
                best = [min(pair) for pair in zip(best, now, strict=True)]
            print(f"{name:20} {at_once:8} {best[0]:8.1f} {best[1]:8.1f}", flush=True)
    await ours.close()
    await theirs.close()


def main() -> None:
    with etcd() as url:
        uvloop.run(_measure(url.removeprefix("etcd://")))


if __name__ == "__main__":
    main()
