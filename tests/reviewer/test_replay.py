"""Every witness of the golden folders, written to two running servers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from copy import deepcopy

import pytest
import yaml

from instar.base.json_values import Object
from instar.review import review
from instar.tools.reviewer.report import Effect, Finding, Witness
from tests.reviewer.corpus import Neighbours, crds, neighbours
from tests.reviewer.golden import FOLDER, cases, review_folder
from tests.reviewer.replay import assert_real
from tests.reviewer.widget import changed, put, widget
from tests.support.corpus import needs_corpus
from tests.support.server import Answer, LiveServer, live_server

_NOT_ESTABLISHABLE = {"crd-refused", "unique-items-added", "unique-items-removed"}
"""Their CRDs are refused by the server to begin with."""
_WITH_CONVERTER = {"conversion-loses", "conversion-fails"}


def _side(name: str, side: str) -> Object:
    found: Object = yaml.safe_load((FOLDER / name / f"{side}.yaml").read_text())
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


def _has_witness(name: str) -> bool:
    found = json.loads((FOLDER / name / "expected.json").read_text())["findings"]
    return any("witness" in item and "targetVersion" not in item["witness"] for item in found)


_REPLAYED = [
    name
    for name in cases()
    if name not in _NOT_ESTABLISHABLE | _WITH_CONVERTER and _has_witness(name)
]


@pytest.mark.parametrize("name", _REPLAYED)
def test_servers_do_to_the_witness_what_the_finding_says(
    name: str, servers: tuple[LiveServer, LiveServer]
) -> None:
    found = [item for item in _witnessed(name) if item.witness and not item.witness.new_version]

    _replay(servers, _side(name, "old"), _side(name, "new"), found, f"{name}.example.com")


def test_servers_refuse_the_update_that_shows_a_transition_rule(
    servers: tuple[LiveServer, LiveServer],
) -> None:
    rule = {"rule": "self == oldSelf", "message": "immutable"}
    new = changed(put("spec", "image", x_kubernetes_validations=[rule]))

    _replay(servers, widget(), new, review(widget(), new).findings, "transition.example.com")


def test_servers_refuse_the_status_that_shows_a_transition_rule(
    servers: tuple[LiveServer, LiveServer],
) -> None:
    rule = {"rule": "self >= oldSelf", "message": "went back"}
    new = changed(put("status", "ready", x_kubernetes_validations=[rule]))
    found = review(widget(), new).findings

    assert all(item.witness and item.witness.through_status for item in found)
    _replay(servers, widget(), new, found, "status-transition.example.com")


def test_server_shows_what_strategy_none_loses(servers: tuple[LiveServer, LiveServer]) -> None:
    [finding] = _witnessed("conversion-none-loses")
    assert finding.witness is not None
    witness, server, group = finding.witness, servers[1], "loses.example.com"
    server.create_crd(_in_group(_side("conversion-none-loses", "new"), group))

    written = _post(server, witness.object, group, witness.version)
    path = _path(group, witness.new_version, "widgets", witness.object)
    read = server.request("GET", f"{path}/{witness.object['metadata']['name']}")

    assert written.status == 201, written.text
    assert read.json["spec"] != witness.object["spec"]


_PAIRS = {"flux-source v0.36.1 v1.0.0", "flux-source v1.6.0 v1.7.0", "gateway-api v0.5.1 v0.8.1"}


@needs_corpus
@pytest.mark.parametrize(
    "pair", [item for item in neighbours() if item.name in _PAIRS], ids=lambda pair: pair.name
)
def test_servers_agree_with_every_witness_of_real_releases(
    pair: Neighbours, servers: tuple[LiveServer, LiveServer]
) -> None:
    before, after = crds(pair.old), crds(pair.new)
    for position, name in enumerate(sorted(set(before) & set(after))):
        found = [
            item
            for item in review(before[name], after[name]).findings
            if item.witness and not item.witness.new_version
        ]
        group = f"{pair.name.replace(' ', '-')}-{position}.example.com"
        _replay(servers, before[name], after[name], found, group)


def _replay(
    servers: tuple[LiveServer, LiveServer],
    old: Object,
    new: Object,
    findings: Iterable[Finding],
    group: str,
) -> None:
    for server, side in zip(servers, (old, new), strict=True):
        server.create_crd(_in_group(side, group))
    plural = old["spec"]["names"]["plural"]
    for number, finding in enumerate(findings):
        witness = finding.witness
        assert witness is not None
        first, second = (_write(server, witness, group, plural, number) for server in servers)
        if witness.effect is Effect.ACCEPTED:
            first, second = second, first
        assert first.status in (200, 201), f"{finding.rule} {finding.path}: {first.text}"
        if witness.effect is Effect.REFUSED:
            assert second.status in (404, 422), f"{finding.rule} {finding.path}: {second.text}"
        else:
            # A version that is not served any more is only read from storage, which prunes too.
            assert second.status in (404, 422) or _content(second) != _content(first)


def _in_group(crd: Object, group: str) -> Object:
    out = deepcopy(crd)
    out["metadata"]["name"] = f"{crd['spec']['names']['plural']}.{group}"
    out["metadata"].pop("creationTimestamp", None)
    out["spec"]["group"] = group
    out.pop("status", None)
    return out


def _write(server: LiveServer, witness: Witness, group: str, plural: str, number: int) -> Answer:
    """Create it under a name of its own; then update it, or its status, where that is the point."""
    name = f"{witness.object['metadata']['name']}-{number}"
    first = _named(witness.before or witness.object, name)
    answer = _post(server, first, group, witness.version, plural)
    if answer.status != 201 or not (witness.before or witness.through_status):
        return answer
    path = f"{_path(group, witness.version, plural, first)}/{name}"
    if witness.before and witness.through_status:
        with_status = {**answer.json, "status": first.get("status")}
        answer = server.request("PUT", f"{path}/status", with_status)
        assert answer.status == 200, answer.text
    sent = _named(witness.object, name)
    sent["apiVersion"] = f"{group}/{witness.version}"
    sent["metadata"]["resourceVersion"] = answer.json["metadata"]["resourceVersion"]
    if witness.through_status:
        status = server.request("PUT", f"{path}/status", sent)
        return answer if status.status == 404 else status
    return server.request("PUT", path, sent)


def _named(obj: Object, name: str) -> Object:
    return {**deepcopy(obj), "metadata": {**obj["metadata"], "name": name}}


def _post(
    server: LiveServer, obj: Object, group: str, version: str, plural: str = "widgets"
) -> Answer:
    sent = {**obj, "apiVersion": f"{group}/{version}"}
    return server.request("POST", _path(group, version, plural, obj), sent)


def _path(group: str, version: str, plural: str, obj: Object) -> str:
    namespace = obj["metadata"].get("namespace")
    inside = f"namespaces/{namespace}/" if namespace else ""
    return f"/apis/{group}/{version}/{inside}{plural}"


def _content(answer: Answer) -> Object:
    body = answer.json
    return {name: body[name] for name in body if name not in ("metadata", "apiVersion", "kind")}
