"""The commands of ``docs/how-to/webhook-outage.md``, run in order while the webhook is gone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from instar.base.json_values import Object
from tests.support.server import LiveServer
from tests.support.webhook import Webhook
from tests.webhooks.support import Widgets, convert

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "webhook-outage.md"
HOLD = ["example.com/hold"]

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


def _sections() -> dict[str, list[str]]:
    """Heading to its ``sh`` blocks."""
    found: dict[str, list[str]] = {}
    for part in re.split(r"^## ", GUIDE.read_text(), flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        found[heading] = re.findall(r"^```sh\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    return found


def _shell(server: LiveServer, script: str) -> str:
    done = subprocess.run(
        ["bash", "-euc", script],
        env={**os.environ, "KUBECONFIG": str(server.kubeconfig)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


def _names(widgets: Widgets) -> list[str]:
    return [item["metadata"]["name"] for item in widgets.get("v1").json["items"]]


def test_the_commands_of_the_guide_work(fresh_server: LiveServer) -> None:
    server = fresh_server
    with Webhook(convert) as hook:
        widgets = Widgets(server, hook.conversion(), group="example.com")
        _make_namespace(server, "shop")
        widgets.create("v1", "plain")
        for name in ("held", "unserved", "stuck"):
            widgets.create("v1", name, finalizers=HOLD)
        in_shop: Object = widgets.widget("v1", "held", namespace="shop", finalizers=HOLD)
        server.request("POST", widgets.path("v1", namespace="shop"), in_shop)
    sections = _sections()
    before: dict[str, Callable[[], object]] = {
        "The stored version is not served": lambda: _stop_serving_v1(widgets)
    }
    expected = {
        "Delete an object": ["stuck", "unserved"],
        "The stored version is not served": ["stuck"],
        "Last resort: delete what cannot be read": [],
    }

    for heading, blocks in sections.items():
        before.get(heading, lambda: None)()
        for block in blocks:
            _shell(server, block)
        if heading in expected:
            assert _names(widgets) == expected[heading], heading

    assert server.request("GET", widgets.crd_path).status == 404
    assert server.request("GET", "/api/v1/namespaces/shop").status == 404


def _make_namespace(server: LiveServer, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    assert server.request("POST", "/api/v1/namespaces", body).status == 201


def _stop_serving_v1(widgets: Widgets) -> None:
    first, second = widgets.get_versions()
    widgets.change_crd({"versions": [{**first, "served": False}, second]})
