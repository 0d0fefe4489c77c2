"""Measures how many ConversionReviews per second ``instar webhook`` answers, compared with a plain
``http.server`` that does the same work.

``python -m bench.webhook [seconds]``. Both serve TLS with keep-alive to the same clients, in
alternating rounds; the plain handler uses json and one function, without a framework. At the end it
measures the API server's check of the conversion contract, per converted object.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import orjson
import trustme

from instar.wire.conversion import contract

ROOT = Path(__file__).parents[1]
CONNECTIONS = 8
TURNS = 5


class PlainHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # The default, False, makes every small answer wait 40 ms for an acknowledgement.
    disable_nagle_algorithm = "--nodelay" in sys.argv

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review["request"]
        converted = []
        for obj in request["objects"]:
            host, _, port = obj.pop("hostPort").partition(":")
            obj |= {"apiVersion": request["desiredAPIVersion"], "host": host, "port": port}
            converted.append(obj)
        response = {
            "uid": request["uid"],
            "convertedObjects": converted,
            "result": {"status": "Success"},
        }
        frame = {"apiVersion": review["apiVersion"], "kind": review["kind"]}
        body = json.dumps({**frame, "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


def serve_plain(cert: str, key: str) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), PlainHandler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print(f"listening on https://127.0.0.1:{server.server_port}", file=sys.stderr, flush=True)
    server.serve_forever()


def review(objects: int) -> bytes:
    managed = [{"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:hostPort": {}}}]
    items = [
        {
            "apiVersion": "example.com/v1beta1",
            "kind": "CronTab",
            "metadata": {
                "name": f"object-{number}",
                "namespace": "default",
                "uid": f"uid-{number}",
                "labels": {"app": "bench"},
                "managedFields": managed,
            },
            "hostPort": f"host-{number}:80",
        }
        for number in range(objects)
    ]
    return orjson.dumps(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "ConversionReview",
            "request": {"uid": "u", "desiredAPIVersion": "example.com/v1", "objects": items},
        }
    )


class Rate(NamedTuple):
    per_second: float
    cpu: float
    """Seconds of the server's processor per review: says more on a machine that is busy."""


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(url: str, pid: int, tls: ssl.SSLContext, objects: int, seconds: float) -> Rate:
    body, headers = review(objects), {"Content-Type": "application/json"}
    answered = 0

    async def client(session: aiohttp.ClientSession, until: float) -> None:
        nonlocal answered
        while time.perf_counter() < until:
            async with session.post(url, data=body, headers=headers, ssl=tls) as response:
                assert response.status == 200
                await response.read()
            answered += 1

    async with aiohttp.ClientSession() as session:
        await client(session, time.perf_counter() + 0.3)
        answered, began, spent = 0, time.perf_counter(), cpu_seconds(pid)
        await asyncio.gather(*(client(session, began + seconds) for _ in range(CONNECTIONS)))
        elapsed = time.perf_counter() - began
        return Rate(answered / elapsed, (cpu_seconds(pid) - spent) / answered)


def contract_check(objects: int = 1000, rounds: int = 20) -> float:
    """Return the CPU seconds to check an object whose annotation changed; least of all rounds."""
    sent = orjson.loads(review(objects))["request"]["objects"]
    answer = orjson.loads(review(objects))["request"]["objects"]
    for obj in answer:
        obj["metadata"]["annotations"] = {"example.com/kept": "80"}
    best = float("inf")
    for _ in range(rounds):
        began = time.thread_time()
        contract.accept_all(sent, answer, "example.com/v1beta1")
        best = min(best, time.thread_time() - began)
    return best / objects


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    with tempfile.TemporaryDirectory() as folder:
        authority = trustme.CA()
        issued = authority.issue_cert("127.0.0.1")
        cert, key = f"{folder}/tls.crt", f"{folder}/tls.key"
        issued.cert_chain_pems[0].write_to_path(cert)
        issued.private_key_pem.write_to_path(key)
        tls = ssl.create_default_context()
        authority.configure_trust(tls)
        rules = str(ROOT / "examples/hostport/conversion.yaml")
        instar = ["instar.cli.main", "webhook", rules, "--listen", "127.0.0.1:0"]
        commands: dict[str, list[str]] = {
            "instar webhook": [*instar, "--cert", cert, "--key", key],
            "http.server": ["bench.webhook", "--plain", cert, key],
            "  without Nagle": ["bench.webhook", "--nodelay", "--plain", cert, key],
        }
        with contextlib.ExitStack() as stack:
            servers = {
                name: stack.enter_context(serving(words)) for name, words in commands.items()
            }
            for objects in (1, 100, 1000):
                for name, rate in in_turns(servers, tls, objects, seconds).items():
                    print(
                        f"{name:<15} {objects:>5} objects: {rate.per_second:8.1f} reviews/s,"
                        f" {rate.cpu * 1000:7.2f} ms of CPU each",
                        flush=True,
                    )
    print(f"contract check  {contract_check() * 1e6:8.2f} µs of CPU per converted object")


@contextlib.contextmanager
def serving(words: list[str]) -> Iterator[tuple[str, int]]:
    """Run a webhook; yield its address and process."""
    process: Any = subprocess.Popen(
        [sys.executable, "-m", *words], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process.stderr.readline().split()[-1] + "/convert", process.pid
    finally:
        process.terminate()
        process.wait()


def in_turns(
    servers: Mapping[str, tuple[str, int]], tls: ssl.SSLContext, objects: int, seconds: float
) -> dict[str, Rate]:
    """Return the best of several alternating rounds, because other load only slows a server."""
    best = dict.fromkeys(servers, Rate(0.0, float("inf")))
    for _ in range(TURNS):
        for name, (url, pid) in servers.items():
            rate = asyncio.run(measure(url, pid, tls, objects, seconds / TURNS))
            known = best[name]
            best[name] = Rate(max(known.per_second, rate.per_second), min(known.cpu, rate.cpu))
    return best


if __name__ == "__main__":
    if "--plain" in sys.argv:
        serve_plain(*sys.argv[-2:])
    else:
        main()
