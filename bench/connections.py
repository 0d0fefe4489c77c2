"""``python -m bench.connections``: measures gets and creates on etcd and on SQLite, by the number
of connections.

Both servers are measured in alternating rounds. For each number of connections it prints the least
CPU time of the server per request, that of etcd in brackets, the best rate and the least p99. Needs
Debian's etcd-server and wrk.
"""

from __future__ import annotations

import argparse
import json
from typing import NamedTuple

from bench.fixtures import BASE, CRDS, crd, thing
from bench.load import wrk
from bench.process import Measured, cpu_seconds, etcd_process, scratch, serving


class RoundResult(NamedTuple):
    server: float
    etcd: float
    rate: float
    p99: float


class LoadedServer:
    """A server under load, and the pid of its etcd, if it has one."""

    def __init__(self, name: str, server: Measured, store: int | None) -> None:
        self.name, self._server, self._store = name, server, store
        server.call("POST", CRDS, crd())
        made = json.loads(server.call("POST", BASE, thing()))
        self._one = f"{BASE}/{made['metadata']['name']}"

    def turn(self, verb: str, connections: int, seconds: int) -> RoundResult:
        get = verb == "get"
        before = self._cpu()
        rate = wrk(
            self._server.url + (self._one if get else BASE),
            self._server.token,
            connections=connections,
            seconds=seconds,
            method="GET" if get else "POST",
            body=None if get else thing(),
        )
        assert not rate.errors, f"{rate.errors} errors"
        server, store = (
            (after - then) / rate.requests * 1e6
            for after, then in zip(self._cpu(), before, strict=True)
        )
        return RoundResult(server, store, rate.per_second, rate.p99_ms)

    def _cpu(self) -> tuple[float, float]:
        return self._server.cpu_seconds(), cpu_seconds(self._store) if self._store else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.connections", description=__doc__)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 4, 16, 32, 64])
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    with (
        etcd_process() as (address, pid),
        scratch() as first,
        scratch() as second,
        serving(f"{address}/bench", first) as on_etcd,
        serving(f"sqlite:{second}/bench.db", second) as on_file,
    ):
        sides = LoadedServer("etcd", on_etcd, pid), LoadedServer("SQLite", on_file, None)
        for verb in ("get", "create"):
            for connections in options.connections:
                turns: dict[str, list[RoundResult]] = {side.name: [] for side in sides}
                for _ in range(options.rounds):
                    for side in sides:
                        turns[side.name].append(side.turn(verb, connections, options.seconds))
                for name, found in turns.items():
                    _print_line(f"{verb}, {connections} connections, {name}", found)


def _print_line(what: str, turns: list[RoundResult]) -> None:
    server, store = min(turn.server for turn in turns), min(turn.etcd for turn in turns)
    rate, p99 = max(turn.rate for turn in turns), min(turn.p99 for turn in turns)
    print(f"{what:32} {server:6.0f} µs ({store:.0f}) {rate:8.0f} /s  p99 {p99:.1f} ms", flush=True)


if __name__ == "__main__":
    main()
