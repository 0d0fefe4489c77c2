"""Conversions served by a kopf operator in its loop: docs/how-to/conversion-webhook.md."""

from __future__ import annotations

import asyncio
import re
import ssl
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from instar.tools.sdk.certificates import self_signed
from tests.e2e.test_examples import EXAMPLES, _instar, _sample

pytestmark = pytest.mark.anyio
DOCS = Path(__file__).parents[2] / "docs" / "how-to" / "conversion-webhook.md"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def _operator(folder: Path) -> str:
    """The documented code, with the paths and the port of this test."""
    blocks: list[str] = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    [code] = [block for block in blocks if "kopf.on.startup" in block]
    code = code.replace("/tls/", f"{folder}/")
    code = code.replace('listen("", 9443)', "SOCKET")
    prologue = f"""
import sys
sys.path.insert(0, {str(EXAMPLES / "cron")!r})
from crontab_conversion import crontab
from instar.sdk.serving import listen
SOCKET = listen("127.0.0.1", 0)
print("port", SOCKET.getsockname()[1], flush=True)
"""
    return prologue + code


async def test_an_operator_serves_conversions_beside_its_handlers(tmp_path: Path) -> None:
    issued = self_signed("127.0.0.1")
    issued.write(tmp_path / "tls.crt", tmp_path / "tls.key")
    (tmp_path / "handlers.py").write_text(_operator(tmp_path))
    storage = ("--storage", "memory:", "--cert-dir", "certs", "--kubeconfig", "config")
    serve = ("serve", "--listen", "127.0.0.1:0", *storage)
    async with _instar(*serve, cwd=tmp_path, until="ready"):
        answer, code = await _ask_operator(tmp_path, issued.ca.decode())

    [converted] = answer["response"]["convertedObjects"]
    assert converted["spec"]["dayOfWeek"] == "*/5"
    assert code == 0


async def _ask_operator(folder: Path, ca: str) -> tuple[dict[str, Any], int]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "kopf", "run", "--all-namespaces", "handlers.py"),
        cwd=folder,
        env={
            "KUBECONFIG": str(folder / "config"),
            "PYTHONPATH": str(EXAMPLES.parent),
            "PATH": "/usr/bin:/bin",
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    port = (await process.stdout.readline()).split()[1].decode()
    review = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": {
            "uid": "u",
            "desiredAPIVersion": "stable.example.com/v2",
            "objects": [_sample("cron")],
        },
    }
    trust = ssl.create_default_context(cadata=ca)
    async with asyncio.timeout(30), aiohttp.ClientSession() as session:
        url = f"https://127.0.0.1:{port}/convert"
        async with session.post(url, json=review, ssl=trust) as response:
            answer: dict[str, Any] = await response.json()
    process.terminate()
    return answer, await asyncio.wait_for(process.wait(), 30)
