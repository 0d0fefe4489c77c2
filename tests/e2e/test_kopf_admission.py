"""A kopf operator's own admission server against ours, unchanged."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from instar.tools.sdk.certificates import self_signed
from tests.rest.support import Collection
from tests.support import crds
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

pytestmark = pytest.mark.anyio
OPERATOR = Path(__file__).with_name("kopf_admission.py")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def _crd() -> dict[str, object]:
    spec = {
        "type": "object",
        "properties": {"color": {"type": "string"}, "replicas": {"type": "integer"}},
    }
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return crds.crd(
        crds.version("v1", crds.fields(spec=spec, status=status), subresources={"status": {}}),
        group="kopf.example.com",
        plural="widgets",
        kind="Widget",
    )


async def _started(server: LiveServer, folder: Path) -> asyncio.subprocess.Process:
    issued = self_signed("127.0.0.1")
    issued.write(folder / "tls.crt", folder / "tls.key")
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kopf", "run", "--all-namespaces", str(OPERATOR)),
        env={
            **os.environ,
            "KUBECONFIG": str(server.kubeconfig),
            "HOOK_CERT": str(folder / "tls.crt"),
            "HOOK_KEY": str(folder / "tls.key"),
        },
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )


def _configured(server: LiveServer) -> bool:
    kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    path = "/apis/admissionregistration.k8s.io/v1"
    names = (f"{path}/{kind}/auto.kopf.dev" for kind in kinds)
    found = [server.request("GET", name) for name in names]
    return all(each.status == 200 and each.json.get("webhooks") for each in found)


async def test_kopfs_handlers_validate_and_mutate_writes(tmp_path: Path) -> None:
    with live_server() as server:
        server.create_crd(dict(_crd()))
        widgets = Collection(server, "kopf.example.com", "widgets", "Widget")
        operator = await _started(server, tmp_path)
        try:
            await asyncio.to_thread(eventually, lambda: _configured(server), 60.0)
            blue = widgets.request("POST", "", widgets.obj("blue", spec={"color": "blue"}))
            red = widgets.request("POST", "", widgets.obj("red", spec={"color": "red"}))
            changed = widgets.patch("red", {"spec": {"color": "blue"}})
        finally:
            operator.terminate()
            await asyncio.wait_for(operator.wait(), 60)

    assert (blue.status, blue.json["message"]) == (
        418,
        'admission webhook "no-blue.auto.kopf.dev" denied the request: blue is not allowed',
    )
    assert red.status == 201, red.text
    assert red.json["spec"] == {"color": "red", "replicas": 1}
    assert '299 - "judged by kopf"' in red.warnings
    assert changed.status == 418
