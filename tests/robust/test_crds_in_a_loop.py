"""CRDs created one after another by a client that never stops: the server answers its probes, and
takes a bounded amount of memory for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from instar.base.json_values import Object
from tests.replicas.processes import Replica, prepare_pki
from tests.support import crds

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WARM, MEASURED = 100, 200
MOST_KILOBYTES = 100
"""For each CRD; 21 were measured with 3,000."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Replica]:
    prepare_pki(tmp_path)
    process = Replica(tmp_path, "s", "memory:", ("--furniture", "off"))
    try:
        process.start()
        process.until_ready()
        yield process
    finally:
        process.kill()


def _create(server: Replica, numbers: range) -> None:
    for number in numbers:
        schema = crds.fields(spec=crds.fields(size={"type": "integer"}))
        definition = crds.crd(
            crds.version("v1", schema, storage=True),
            group=f"g{number}.example.com",
            plural="widgets",
            kind=f"Widget{number}",
        )
        answer = server.request("POST", CRDS, definition)
        assert answer.status == 201, answer.text
        if number % 20 == 0:
            assert server.request("GET", "/livez").status == 200


def _resident_kilobytes(server: Replica) -> int:
    assert server.process is not None
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def test_a_loop_that_creates_crds_takes_bounded_memory_for_each(server: Replica) -> None:
    _create(server, range(WARM))
    before = _resident_kilobytes(server)

    _create(server, range(WARM, WARM + MEASURED))

    assert _resident_kilobytes(server) - before < MEASURED * MOST_KILOBYTES
    assert len(server.request("GET", CRDS).json["items"]) == WARM + MEASURED
    last = WARM + MEASURED - 1
    widget: Object = {"apiVersion": f"g{last}.example.com/v1", "kind": f"Widget{last}"}
    widget |= {"metadata": {"name": "a"}, "spec": {"size": 1}}
    path = f"/apis/g{last}.example.com/v1/namespaces/default/widgets"
    server.until(lambda: server.request("POST", path, widget).status == 201)
    assert server.request("GET", "/readyz").status == 200
