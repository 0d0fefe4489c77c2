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

from instar.cli.commands import webhook
from instar.cli.shared.failure import CliFailure
from instar.sdk.serving import TlsFiles
from instar.tools.sdk.certificates import self_signed
from instar.tools.sdk.crd_patch import conversion_stanza, merged_bundle
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
        (["m:c", "--cert", "x"], "must be given together"),
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


SERVICE = {"service": {"name": "a", "namespace": "b"}}


async def _patched(existing: dict[str, Any], tmp_path: Path, *words: str) -> list[Any]:
    """The patches a CRD got, or how the command failed."""
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
        named = ["--self-signed", "a.b.svc", "--patch-crd", "ws.example.com", *files, *words]
        args = _args(*named, "--kubeconfig", str(tmp_path / "config"))
        try:
            await asyncio.to_thread(webhook.run, args)
        except CliFailure as failure:
            patches.append(failure)
    return patches


@pytest.mark.parametrize(
    ("existing", "expected"),
    [
        ({"strategy": "None"}, {"strategy", "webhook"}),
        ({"strategy": "Webhook", "webhook": {"clientConfig": SERVICE}}, {"webhook"}),
    ],
)
async def test_patch_crd_sets_the_webhook_up_or_only_its_authority(
    existing: dict[str, Any],
    expected: set[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    [patch] = await _patched(existing, tmp_path)

    assert patch["metadata"] == {"resourceVersion": "7"}
    assert set(patch["spec"]["conversion"]) == expected
    bundle = capsys.readouterr().out.strip()
    assert patch["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] == bundle


async def test_an_address_the_certificate_is_not_for_is_refused_or_moved(tmp_path: Path) -> None:
    elsewhere = {"clientConfig": {"url": "https://other:1/convert", "caBundle": "eA=="}}
    existing = {"strategy": "Webhook", "webhook": elsewhere}

    [refused] = await _patched(existing, tmp_path)
    [moved] = await _patched(existing, tmp_path, "--repoint")

    assert isinstance(refused, CliFailure)
    assert "sends its reviews to other, and this certificate is for a.b.svc" in str(refused)
    client = moved["spec"]["conversion"]["webhook"]["clientConfig"]
    assert client["url"] is None
    assert client["service"]["name"] == "a"


def test_a_new_authority_is_added_to_those_in_use() -> None:
    from cryptography import x509

    old, new = self_signed("a.b.svc"), self_signed("a.b.svc")
    expired = self_signed("a.b.svc", days=0)

    merged = merged_bundle(new.bundle, merged_bundle(old.bundle, expired.bundle))

    found = x509.load_pem_x509_certificates(base64.b64decode(merged))
    expected = [x509.load_pem_x509_certificate(item.ca) for item in (new, old)]
    assert found == expected
    assert merged_bundle(new.bundle, merged) == merged
    assert merged_bundle(new.bundle, "bm90IGEgY2VydGlmaWNhdGU=") == new.bundle


def test_authorities_of_long_ago_are_left_behind() -> None:
    bundle = ""
    for _ in range(7):
        bundle = merged_bundle(self_signed("a.b.svc").bundle, bundle)

    assert base64.b64decode(bundle).count(b"BEGIN CERTIFICATE") == 4


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
