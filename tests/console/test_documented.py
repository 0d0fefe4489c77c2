"""The page that tells programs what to expect is compared with what they get."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from tests.console.support import Browser
from tests.console.worlds import renaming, store, widget, widgets
from tests.support.server import LiveServer
from tests.support.webhook import Webhook

DOCS = Path(__file__).resolve().parents[2] / "docs"
_EXAMPLE = re.compile(r"```json\n(.*?)```", re.DOTALL)


def examples() -> list[Any]:
    return [
        orjson.loads(text)
        for text in _EXAMPLE.findall((DOCS / "reference" / "console-api.md").read_text())
    ]


def example(*keys: str) -> dict[str, Any]:
    """The one example that has all of these keys."""
    [found] = [item for item in examples() if set(keys) <= set(item)]
    return dict(found)


def shape(value: Any) -> Any:
    """Keys, and those of the first item of a list."""
    if isinstance(value, dict):
        return sorted(value)
    return shape(value[0]) if isinstance(value, list) and value else None


def test_documents_have_the_documented_members(console: LiveServer, browser: Browser) -> None:
    group = "documented.example.com"
    with Webhook(renaming) as hook:
        console.create_crd(widgets(group, conversion=hook.conversion()))
        store(console, widget(group, "a", width=1))
        console.request("GET", f"/apis/{group}/v1beta1/widgets", headers={"User-Agent": "argo"})
        base = f"/console/api/crds/widgets.{group}"
        convert = browser.request(
            "POST", "/console/api/convert", {"object": widget(group, "a", width=1)}
        )
        found = {
            ("authenticated",): browser.request("GET", "/console/session").json,
            ("crds", "exact"): browser.request("GET", "/console/api/overview").json,
            ("quietDays",): browser.request("GET", f"{base}/versions").json,
            ("never",): browser.request("GET", f"{base}/fields").json,
            ("storedBytes",): browser.request("GET", f"{base}/objects/default/a").json,
            ("webhooks",): browser.request("GET", "/console/api/webhooks").json,
            ("roundTrip",): convert.json,
            ("engine",): browser.request("GET", f"{base}/migration").json,
        }

    for keys, document in found.items():
        told = example(*keys)
        assert sorted(document) == sorted(told), keys
        for name in ("crds", "versions", "fields", "webhooks"):
            assert shape(document.get(name)) == shape(told.get(name)), (keys, name)


def test_the_role_of_the_docs_is_one(console: LiveServer) -> None:
    text = (DOCS / "how-to" / "console.md").read_text()
    role = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[0])

    made = console.request("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)

    assert made.status == 201, made.text


def test_the_curl_of_the_docs_runs_as_written(console: LiveServer, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("NO CURL on this machine: the command of docs/how-to/console.md was not run")
    text = (DOCS / "how-to" / "console.md").read_text()
    command = re.findall(r"```sh\n(curl .*?)```", text, re.DOTALL)[0]
    (tmp_path / "ca.crt").write_bytes(console.ca)
    known = {"TOKEN": console.token, "SERVER": console.url, "PATH": "/usr/bin:/bin"}

    done = subprocess.run(
        command, shell=True, cwd=tmp_path, env=known, capture_output=True, timeout=30
    )

    assert "crds" in orjson.loads(done.stdout)
