"""Thousands of watches that are never read, and a few that are."""

from __future__ import annotations

import contextlib
import re
import resource
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from instar.base.http2 import frames
from tests.robust.victim import Victim
from tests.support.http2_client import TlsClient

MAPS = "/api/v1/namespaces/default/configmaps"
CONNECTIONS, STREAMS, ALONE, READ = 4, 1000, 980, 20
WRITES = 60
NUMBER = re.compile(rb'"n(\d+)n"')
MOST_BYTES = 1 << 30
"""60 events of 200 kB for 4,980 watches would be 60 GB."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Victim]:
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed[1], allowed[1]))
    victim = Victim(tmp_path)
    yield victim
    victim.stop()
    resource.setrlimit(resource.RLIMIT_NOFILE, allowed)


def dial(victim: Victim, *protocols: str) -> ssl.SSLSocket:
    plain = socket.create_connection(victim.address, 60)
    context = ssl.create_default_context(cadata=victim.context.get_ca_certs(binary_form=True)[0])
    context.set_alpn_protocols(list(protocols))
    return context.wrap_socket(plain, server_hostname=victim.address[0])


def open_streams(client: TlsClient, count: int, path: str) -> None:
    for number in range(count):
        client.ask(2 * number + 1, path)
    for _ in range(count):
        assert client.status() == b"200"


def read_events(reader: TlsClient, seen: dict[int, list[int]], count: int) -> None:
    """Read until every watch has so many events; a frame may end within the number of one."""
    ends = dict.fromkeys(seen, b"")
    while any(len(numbers) < count for numbers in seen.values()):
        frame = reader.next(frames.DATA)
        text = ends[frame.stream] + frame.payload
        found = list(NUMBER.finditer(text))
        seen[frame.stream] += [int(each[1]) for each in found]
        ends[frame.stream] = text[max(len(text) - 10, found[-1].end() if found else 0) :]


def test_5000_watches_of_which_few_are_read_stay_within_bounds_and_the_few_get_every_event(
    server: Victim,
) -> None:
    made = server.request("POST", MAPS, {"metadata": {"name": "a"}, "data": {"a": "x" * 200_000}})
    watch = f"{MAPS}?watch=true&resourceVersion={made.json['metadata']['resourceVersion']}"
    with contextlib.ExitStack() as stack:
        for _ in range(CONNECTIONS):
            tls = stack.enter_context(dial(server, "h2"))
            open_streams(TlsClient(tls, server.token, wide=False), STREAMS, watch)
        for _ in range(ALONE):
            tls = stack.enter_context(dial(server, "http/1.1"))
            tls.sendall(server.head(f"GET {watch} HTTP/1.1") + b"\r\n")
        reader = TlsClient(stack.enter_context(dial(server, "h2")), server.token)
        open_streams(reader, READ, watch)
        before = server.memory

        seen: dict[int, list[int]] = {2 * number + 1: [] for number in range(READ)}
        with server.watched(3.0):
            for number in range(WRITES):
                patch = {"data": {"n": f"n{number}n"}}
                content = "application/merge-patch+json"
                done = server.request("PATCH", f"{MAPS}/a", patch, content_type=content)
                assert done.status == 200
                read_events(reader, seen, number + 1)
            grown = server.memory - before

    assert all(numbers == list(range(WRITES)) for numbers in seen.values())
    assert grown < MOST_BYTES, grown
