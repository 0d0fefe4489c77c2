"""``python -m bench.beside TREE``: compares this tree with another one (a worktree of an older
commit), in alternating rounds.

Compares the server's CPU time per request, the least of several rounds. On a shared machine it
varies by a few per cent, while requests per second vary too much to be compared. Runs on SQLite, or
with ``--storage etcd`` on one member that both servers share (etcd's own CPU time is not counted).
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from bench.fixtures import BASE, CRDS, OTHER, crd, thing
from bench.process import Measured, etcd, scratch, serving

_HERE = Path(__file__).resolve().parent.parent
_CONNECTIONS = 16
_OBJECTS = 100
_MERGE_PATCH, _APPLY_PATCH = "application/merge-patch+json", "application/apply-patch+yaml"


class RequestSpec(NamedTuple):
    method: str
    path: str
    body: object = None
    content: str = "application/json"


class Operation(NamedTuple):
    name: str
    requests: int
    ask: Callable[[int], RequestSpec]


def _object_named(name: str, **spec: object) -> object:
    obj = thing()
    obj["metadata"] = {**obj["metadata"], "name": name}
    obj["spec"] |= spec
    return obj


def _object_name(number: int) -> str:
    return f"kept-{number % _OBJECTS}"


def _patch(number: int, body: object) -> RequestSpec:
    return RequestSpec("PATCH", f"{BASE}/{_object_name(number)}", body, _MERGE_PATCH)


def _annotation_patch(number: int) -> RequestSpec:
    return _patch(number, {"metadata": {"annotations": {"example.com/seq": str(number)}}})


def _apply_request(number: int) -> RequestSpec:
    path = f"{BASE}/{_object_name(number)}?fieldManager=bench&force=true"
    return RequestSpec(
        "PATCH", path, _object_named(_object_name(number), replicas=number % 1000), _APPLY_PATCH
    )


OPERATIONS = (
    Operation("get", 3200, lambda n: RequestSpec("GET", f"{BASE}/{_object_name(n)}")),
    Operation(
        "get, other version", 3200, lambda n: RequestSpec("GET", f"{OTHER}/{_object_name(n)}")
    ),
    Operation("create", 800, lambda n: RequestSpec("POST", BASE, _object_named(f"made-{n}"))),
    Operation("merge patch", 800, lambda n: _patch(n, {"spec": {"replicas": n % 1000}})),
    Operation("patch, annotation", 800, _annotation_patch),
    Operation("apply", 800, _apply_request),
    Operation("list 100", 320, lambda n: RequestSpec("GET", f"{BASE}?limit=100")),
    Operation(
        "list by label, none", 1600, lambda n: RequestSpec("GET", f"{BASE}?labelSelector=app%3Dx")
    ),
)


class Client:
    """A few connections with one request in flight on each."""

    def __init__(self, server: Measured) -> None:
        self._server = server
        self._number = 0
        host, port = server.url.removeprefix("https://").rsplit(":", 1)
        self._sockets = [_connect(host, int(port)) for _ in range(_CONNECTIONS)]

    def fill(self) -> None:
        self._server.call("POST", CRDS, crd())
        for number in range(_OBJECTS):
            self._server.call("POST", BASE, _object_named(_object_name(number)))

    def cpu_of(self, operation: Operation) -> float:
        """Return the microseconds of server CPU per request."""
        before = _cpu_seconds(self._server.pid)
        for _ in range(operation.requests // _CONNECTIONS):
            for each in self._sockets:
                self._number += 1
                each.sendall(self._encode(operation.ask(self._number)))
            for each in self._sockets:
                status = _read(each)
                assert status in (200, 201), f"{operation.name}: {status}"
        return (_cpu_seconds(self._server.pid) - before) / operation.requests * 1e6

    def _encode(self, ask: RequestSpec) -> bytes:
        body = b"" if ask.body is None else json.dumps(ask.body).encode()
        head = (
            f"{ask.method} {ask.path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
            f"{self._server.token}\r\nAccept: application/json\r\nUser-Agent: bench/1\r\n"
        )
        if body:
            head += f"Content-Type: {ask.content}\r\nContent-Length: {len(body)}\r\n"
        return head.encode() + b"\r\n" + body


def _connect(host: str, port: int) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection((host, port))
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(plain)


def _read(connection: ssl.SSLSocket) -> int:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(1 << 16)
    head, _, rest = data.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
    while len(rest) < length:
        rest += connection.recv(1 << 16)
    return int(head[9:12])


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time of all threads to the nanosecond; clock ticks are too coarse for one
    round.
    """
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((each / "schedstat").read_text().split()[0]) for each in threads) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.beside", description=__doc__)
    parser.add_argument("tree", type=Path, help="a checkout to compare this one with")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--storage", choices=("sqlite", "etcd"), default="sqlite")
    parser.add_argument(
        "--requests",
        type=int,
        default=3200,
        help="at most so many in a round: where neighbours are busy, many short rounds find a "
        "quiet moment that few long ones miss",
    )
    parser.add_argument("--only", default="", help="operations that begin so")
    options = parser.parse_args()
    with ExitStack() as stack:
        clients = []
        if options.storage == "etcd":
            url = stack.enter_context(etcd())
        for number, tree in enumerate((options.tree.resolve(), _HERE)):
            folder = stack.enter_context(scratch())
            on_file = options.storage == "sqlite"
            storage = f"sqlite:{folder}/bench.db" if on_file else f"{url}/tree-{number}"
            environment = {**os.environ, "PYTHONPATH": str(tree)}
            server = stack.enter_context(serving(storage, folder, environment=environment))
            clients.append(Client(server))
            clients[-1].fill()
        print(f"{'µs of CPU a request':24} {options.tree.name:>10} {'here':>10} {'ratio':>7}")
        for operation in OPERATIONS:
            if not operation.name.startswith(options.only):
                continue
            operation = operation._replace(requests=min(operation.requests, options.requests))
            best = [float("inf")] * 2
            for _ in range(options.rounds + 1):  # one more than counts: the first warms up
                best = [min(b, c.cpu_of(operation)) for b, c in zip(best, clients, strict=True)]
            there, here = best
            print(f"{operation.name:24} {there:10.1f} {here:10.1f} {here / there:7.3f}", flush=True)


if __name__ == "__main__":
    main()
