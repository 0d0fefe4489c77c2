"""``instar webhook`` as a command: flags, manifests, certificates, patching a CRD."""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from instar.cli import webhook
from instar.cli.failure import CliFailure
from instar.sdk.certificates import self_signed
from instar.sdk.crdpatch import conversion_stanza
from instar.sdk.serving import TlsFiles
from tests.sdk.test_webhook import _fetch, _obj, _review

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def _args(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    webhook.add_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name a converter"),
        (["m:c"], "give --cert and --key"),
        (["m:c", "--cert", "x"], "belong together"),
        (["m:c", "--insecure-http", "--self-signed", "a.b.svc"], "excludes"),
        (["m:c", "--patch-crd", "x", "--insecure-http"], "needs --self-signed"),
        (["--self-signed", "a.b.svc"], "nothing to serve"),
        (["absent_module:c", "--insecure-http"], "there is no module"),
    ],
)
def test_usage_mistakes_exit_2(words: list[str], message: str) -> None:
    with pytest.raises(CliFailure, match=message) as caught:
        webhook.run(_args(*words))

    assert caught.value.code == 2


def test_manifests_are_complete_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    code = webhook.run(_args("m:c", "--manifests", "--name", "hook", "--namespace", "ns"))

    documents = list(yaml.safe_load_all(capsys.readouterr().out))
    kinds = [document["kind"] for document in documents]
    assert code == 0
    assert {"Deployment", "Service", "Certificate"} <= set(kinds)
    certificate = documents[kinds.index("Certificate")]
    assert certificate["spec"]["dnsNames"][0] == "hook.ns.svc"


def test_self_signed_only_writes_files_and_prints_the_bundle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cert, key = tmp_path / "c.pem", tmp_path / "k.pem"

    code = webhook.run(_args("--self-signed", "a.b.svc", "--cert", str(cert), "--key", str(key)))

    bundle = base64.b64decode(capsys.readouterr().out)
    assert (code, key.stat().st_mode & 0o777) == (0, 0o600)
    assert bundle.startswith(b"-----BEGIN CERTIFICATE-----")
    ssl.create_default_context(cadata=bundle.decode())
    TlsFiles(cert=cert, key=key).context()


@pytest.mark.parametrize(
    ("existing", "expected"),
    [
        ({"strategy": "None"}, "strategy"),
        ({"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://x"}}}, "webhook"),
    ],
)
async def test_patch_crd_sets_the_webhook_up_or_only_its_authority(
    existing: dict[str, Any], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    patches: list[Any] = []

    async def handler(request: web.Request) -> web.Response:
        if request.method == "PATCH":
            patches.append(await request.json())
        body = {"metadata": {"resourceVersion": "7"}, "spec": {"conversion": existing}}
        return web.json_response(body)

    api = web.Application()
    api.router.add_route("*", "/{path:.*}", handler)
    async with TestServer(api) as server:
        config = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c"}}],
            "clusters": [{"name": "c", "cluster": {"server": str(server.make_url(""))}}],
        }
        (tmp_path / "config").write_text(yaml.safe_dump(config))
        files = ["--cert", str(tmp_path / "c"), "--key", str(tmp_path / "k")]
        words = ["--self-signed", "a.b.svc", "--patch-crd", "ws.example.com", *files]
        args = _args(*words, "--kubeconfig", str(tmp_path / "config"))
        code = await asyncio.to_thread(webhook.run, args)

    [patch] = patches
    assert code == 0
    assert patch["metadata"] == {"resourceVersion": "7"}
    assert set(patch["spec"]["conversion"]) == {expected} | {"webhook"}
    bundle = capsys.readouterr().out.strip()
    assert patch["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] == bundle


def test_a_host_outside_the_cluster_becomes_a_url() -> None:
    stanza = conversion_stanza("::1", "B", path="/convert", port=9443)

    assert stanza["webhook"]["clientConfig"] == {
        "caBundle": "B",
        "url": "https://[::1]:9443/convert",
    }


async def test_the_command_serves_over_its_own_certificate_and_stops_on_sigterm(
    tmp_path: Path,
) -> None:
    (tmp_path / "conversion.yaml").write_text(
        "conversion: instar/v1\ngroup: example.com\nkind: Widget\n"
        "pairs: [{between: [v1, v2], rules: [{move: {old: a, new: b}}]}]\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "instar.cli.main", "webhook", "conversion.yaml", "--listen", "127.0.0.1:0"),
        *("--self-signed", "127.0.0.1"),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    bundle = base64.b64decode(await process.stdout.readline())
    line = (await process.stderr.readline()).decode()
    trust = ssl.create_default_context(cadata=bundle.decode())
    async with aiohttp.ClientSession() as session:
        url = line.split()[-1] + "/convert"
        _, text = await _fetch(session, "POST", url, json=_review(_obj(a=1)), ssl=trust)
    process.terminate()
    code = await asyncio.wait_for(process.wait(), 10)

    assert json.loads(text)["response"]["convertedObjects"] == [_obj("v2", b=1)]
    assert code == 0


def test_certificates_carry_both_service_names() -> None:
    from cryptography import x509

    issued = self_signed("hook.ns.svc")

    names = x509.load_pem_x509_certificate(issued.pem.cert).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert names.value.get_values_for_type(x509.DNSName) == [
        "hook.ns.svc",
        "hook.ns.svc.cluster.local",
    ]
