"""Every witness of the golden folders, written to two running servers."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
import yaml

from instar.reviewer.report import Effect, Finding
from tests.reviewer.golden import FOLDER, cases, review_folder
from tests.reviewer.replay import assert_real
from tests.support.server import Answer, LiveServer, live_server

Json = dict[str, Any]

_NOT_ESTABLISHABLE = {"crd-refused", "unique-items-added", "unique-items-removed"}
"""Their CRDs are refused by the server to begin with."""
_WITH_CONVERTER = {"conversion-loses", "conversion-fails"}


def _side(name: str, side: str) -> Json:
    found: Json = yaml.safe_load((FOLDER / name / f"{side}.yaml").read_text())
    return found


def _witnessed(name: str) -> list[Finding]:
    return [item for item in review_folder(name).findings if item.witness is not None]


@pytest.mark.parametrize("name", [item for item in cases() if item not in _WITH_CONVERTER])
def test_golden_witness_is_real(name: str) -> None:
    for finding in _witnessed(name):
        assert_real(finding, _side(name, "old"), _side(name, "new"))


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[LiveServer, LiveServer]]:
    with live_server() as old, live_server() as new:
        yield old, new


_REPLAYED = [
    name
    for name in cases()
    if name not in _NOT_ESTABLISHABLE | _WITH_CONVERTER and not name.startswith("conversion-")
]


@pytest.mark.parametrize("name", _REPLAYED)
def test_servers_do_to_the_witness_what_the_finding_says(
    name: str, servers: tuple[LiveServer, LiveServer]
) -> None:
    found = [item for item in _witnessed(name) if item.witness and not item.witness.new_version]
    if not found:
        pytest.skip("no witness of one version")
    group = f"{name}.example.com"
    for server, side in zip(servers, ("old", "new"), strict=True):
        server.create_crd(_in_group(_side(name, side), group))

    for finding in found:
        assert finding.witness is not None
        first, second = (_write(server, finding, group) for server in servers)
        if finding.witness.effect is Effect.ACCEPTED:
            first, second = second, first
        assert first.status == 201, first.text
        if finding.witness.effect is Effect.REFUSED:
            assert second.status in (404, 422), second.text
        else:
            assert second.status == 422 or _content(second) != _content(first)


def _in_group(crd: Json, group: str) -> Json:
    out = deepcopy(crd)
    out["metadata"]["name"] = f"widgets.{group}"
    out["spec"]["group"] = group
    out.pop("status", None)
    return out


def _write(server: LiveServer, finding: Finding, group: str) -> Answer:
    witness = finding.witness
    assert witness is not None
    obj = {**witness.object, "apiVersion": f"{group}/{witness.version}"}
    path = f"/apis/{group}/{witness.version}/namespaces/default/widgets"
    return server.request("POST", path, obj)


def _content(answer: Answer) -> Json:
    body = answer.json
    return {name: body[name] for name in body if name not in ("metadata", "apiVersion", "kind")}
