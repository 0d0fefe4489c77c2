"""The examples as a user runs them: an API server, a webhook in another process, TLS between."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from instar.base.errors import ApiError
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import load_access
from instar.wire.client.paths import crd_path, resource_path

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def _instar(*words: str, cwd: Path, until: str) -> AsyncIterator[str]:
    """The command, running; yields the first line of its output that matches ``until``."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "instar.cli.main", *words),
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    seen = ""
    try:
        async with asyncio.timeout(30):
            while not re.search(until, seen):
                line = await process.stdout.readline()
                assert line, f"instar {words[0]} ended: {seen}"
                seen += line.decode()
        yield seen
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.communicate(), 30)


async def _certificate(host: str, folder: Path) -> str:
    words = ("webhook", "--self-signed", host, "--cert", "tls.crt", "--key", "tls.key")
    async with _instar(*words, cwd=folder, until=r"\S{100}") as bundle:
        return bundle.strip()


@asynccontextmanager
async def _running(name: str, converter: str, folder: Path) -> AsyncIterator[Client]:
    crd = yaml.safe_load((EXAMPLES / name / "crd.yaml").read_text())
    config = crd["spec"]["conversion"]["webhook"]["clientConfig"]
    service = config["service"]
    host = f"{service['name']}.{service['namespace']}.svc"
    config["caBundle"] = await _certificate(host, folder)
    files = ("--cert", str(folder / "tls.crt"), "--key", str(folder / "tls.key"))
    async with AsyncExitStack() as stack:
        webhook = ("webhook", converter, "--listen", "127.0.0.1:0", *files)
        said = await stack.enter_async_context(
            _instar(*webhook, cwd=EXAMPLES / name, until="listening on")
        )
        address = said.split("https://")[1].split()[0]
        mapped = f"{service['namespace']}/{service['name']}={address}"
        storage = ("--storage", "memory:", "--cert-dir", "certs", "--kubeconfig", "config")
        serve = ("serve", "--listen", "127.0.0.1:0", *storage, "--service", mapped)
        await stack.enter_async_context(_instar(*serve, cwd=folder, until="ready"))
        client = await stack.enter_async_context(Client(load_access(folder / "config")))
        await client.post(crd_path(), crd)
        await _established(client, crd["metadata"]["name"])
        yield client


async def _established(client: Client, name: str) -> None:
    async with asyncio.timeout(20):
        while True:
            crd = await client.get(crd_path(name))
            conditions = crd.get("status", {}).get("conditions", [])
            if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                return
            await asyncio.sleep(0.01)


def _sample(name: str) -> dict[str, Any]:
    sample: dict[str, Any] = yaml.safe_load((EXAMPLES / name / "sample.yaml").read_text())
    return sample


async def test_cron_objects_are_seen_and_edited_in_both_versions(tmp_path: Path) -> None:
    def path(version: str, name: str = "") -> str:
        return resource_path(
            "stable.example.com", version, "crontabs", namespace="default", name=name
        )

    async with _running("cron", "crontab_conversion:crontab", tmp_path) as client:
        created = await client.post(path("v1"), _sample("cron"))
        name = created["metadata"]["name"]
        seen = await client.get(path("v2", name))
        await client.put(path("v2", name), {**seen, "spec": {**seen["spec"], "hour": "3"}})
        edited = await client.get(path("v1", name))
        applied = {
            "apiVersion": "stable.example.com/v2",
            "kind": "CronTab",
            "metadata": {"name": name},
            "spec": {"image": "another"},
        }
        await client.patch(path("v2", name), applied, type="apply", fieldManager="e", force=True)
        after_apply = await client.get(path("v1", name))
        listed = await client.list(path("v2"))

    assert seen["spec"]["dayOfWeek"] == "*/5"
    assert edited["spec"]["cronSpec"] == "* 3 * * */5"
    assert after_apply["spec"] == {"cronSpec": "* 3 * * */5", "image": "another"}
    assert [item["spec"]["hour"] for item in listed["items"]] == ["3"]


async def test_hostport_rules_serve_both_versions_and_refusals_reach_the_client(
    tmp_path: Path,
) -> None:
    def path(version: str, name: str = "") -> str:
        return resource_path("example.com", version, "crontabs", namespace="default", name=name)

    async with _running("hostport", "conversion.yaml", tmp_path) as client:
        created = await client.post(path("v1beta1"), _sample("hostport"))
        name = created["metadata"]["name"]
        seen = await client.get(path("v1", name))
        await client.patch(path("v1", name), {"port": "80"})
        edited = await client.get(path("v1beta1", name))
        alone = {**_sample("hostport"), "apiVersion": "example.com/v1", "host": "only"}
        alone["metadata"] = {"name": "half"}
        del alone["hostPort"]
        half = await client.post(path("v1"), alone)

    assert (seen["host"], seen["port"]) == ("localhost", "1234")
    assert edited["hostPort"] == "localhost:80"
    assert half["host"] == "only"


async def test_a_refusal_of_the_webhook_reaches_the_client(tmp_path: Path) -> None:
    rules = (EXAMPLES / "hostport" / "conversion.yaml").read_text()
    strict = tmp_path / "conversion.yaml"
    strict.write_text(rules.replace("{port}", "{port:[0-9]+}"))
    async with _running("hostport", str(strict), tmp_path) as client:
        path = resource_path("example.com", "v1", "crontabs", namespace="default")
        older = resource_path("example.com", "v1beta1", "crontabs", namespace="default")
        await client.post(older, {**_sample("hostport"), "hostPort": "a:b"})
        with pytest.raises(ApiError) as caught:
            await client.get(f"{path}/local-crontab")

    assert "hostPort could not be parsed as {host}:{port}" in caught.value.message
