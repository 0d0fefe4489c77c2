"""Every real CRD of the corpus is accepted, and an object of each lives at each served version."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from instar.base.json_values import Object
from tests.support.corpus import CORPUS, corpus
from tests.support.minimal import generous, minimal
from tests.support.server import Answer, LiveServer, live_server
from tests.support.webhook import Webhook

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def released() -> list[tuple[str, Object]]:
    return [(str(path.relative_to(CORPUS)), crd) for path, crd in corpus()]


def releases(found: list[tuple[str, Object]]) -> list[list[tuple[str, Object]]]:
    """CRDs that can be served side by side: no name twice in a batch."""
    batches: dict[int, list[tuple[str, Object]]] = defaultdict(list)
    seen: dict[str, int] = defaultdict(int)
    for where, crd in found:
        name = crd["metadata"]["name"]
        batches[seen[name]].append((where, crd))
        seen[name] += 1
    return list(batches.values())


@pytest.fixture(scope="module")
def hook() -> Iterator[Webhook]:
    with Webhook() as webhook:
        yield webhook


class Session:
    """Requests over one connection: thousands of TLS handshakes would be most of this test."""

    def __init__(self, server: LiveServer) -> None:
        self._connection = server.connection()
        self._headers = {
            "Authorization": f"Bearer {server.token}",
            "Content-Type": "application/json",
        }

    def request(self, method: str, path: str, body: Any = None) -> Answer:
        sent = None if body is None else json.dumps(body)
        self._connection.request(method, path, sent, self._headers)
        answer = self._connection.getresponse()
        return Answer(answer.status, answer.getheaders(), answer.read())

    def close(self) -> None:
        self._connection.close()


def with_hook(crd: Object, hook: Webhook) -> Object:
    conversion = crd["spec"].get("conversion", {})
    if conversion.get("strategy") != "Webhook":
        return crd
    ours = hook.conversion()
    if crd["apiVersion"].endswith("/v1beta1"):
        client = ours["webhook"]["clientConfig"]
        ours = {
            "strategy": "Webhook",
            "webhookClientConfig": client,
            "conversionReviewVersions": ["v1"],
        }
    return {**crd, "spec": {**crd["spec"], "conversion": ours}}


def schema_of(crd: Object, name: str) -> Object:
    (found,) = [item for item in crd["spec"]["versions"] if item["name"] == name]
    schema: Object = (found.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"}
    return schema


def sample(session: Session, crd: Object, at: str, collection: str) -> Object:
    """As full an object as the server takes: rules across fields forbid some combinations."""
    schema, kind = schema_of(crd, at), crd["spec"]["names"]["kind"]
    for make in (generous, minimal):
        obj = make(schema)
        obj.pop("status", None)
        if make is minimal:
            complete(obj)
        obj |= {"apiVersion": f"{crd['spec']['group']}/{at}", "kind": kind}
        obj["metadata"] = {"name": "sample"}
        if session.request("POST", f"{collection}?dryRun=All", obj).status == 201:
            break
    return obj


def complete(obj: Object) -> None:
    """What rules in CEL demand beyond the schemas; changes its argument."""
    spec = obj.get("spec") or {}
    if "validation" in spec:
        spec["validation"]["wellKnownCACertificates"] = "System"
    for rule in spec.get("rules", ()):
        for reference in rule.get("backendRefs", ()):
            reference["port"] = 80


def live_through(server: LiveServer, session: Session, crd: Object, at: str) -> None:
    """create → get → list → update → delete, all at one version."""
    spec = crd["spec"]
    space = "" if spec["scope"] == "Cluster" else "/namespaces/default"
    collection = f"/apis/{spec['group']}/{at}{space}/{spec['names']['plural']}"
    path = f"{collection}/sample"

    obj = sample(session, crd, at, collection)
    created = expect(201, session.request("POST", collection, obj))
    got = expect(200, session.request("GET", path))
    assert got == created
    (listed,) = expect(200, session.request("GET", collection))["items"]
    assert listed == got
    got["metadata"]["labels"] = {"seen": "yes"}
    updated = expect(200, session.request("PUT", path, got))
    assert updated["metadata"]["labels"] == {"seen": "yes"}
    assert {**updated, "metadata": {}} == {**got, "metadata": {}}
    key = collection.removeprefix(f"/apis/{spec['group']}/{at}/").removeprefix(
        "namespaces/default/"
    )
    where = f"{spec['group']}/{key}/{'default/' if space else ''}sample"
    (storage,) = [item["name"] for item in spec["versions"] if item["storage"]]
    assert server.stored(where)["apiVersion"] == f"{spec['group']}/{storage}"
    expect(200, session.request("DELETE", path))
    assert session.request("GET", path).status == 404


def expect(status: int, answer: Answer) -> Object:
    assert answer.status == status, answer.text
    body: Object = answer.json
    return body


@pytest.mark.parametrize(("api", "count"), [("v1", 132), ("v1beta1", 12)])
def test_every_real_crd_is_accepted_and_serves_an_object_at_each_version(
    released: list[tuple[str, Object]], hook: Webhook, api: str, count: int
) -> None:
    wanted = f"apiextensions.k8s.io/{api}"
    found = [(where, crd) for where, crd in released if crd["apiVersion"] == wanted]
    assert len(found) == count
    problems: list[str] = []
    for batch in releases(found):
        with live_server() as server, closing(Session(server)) as session:
            for where, crd in batch:
                crd = with_hook(crd, hook)
                server.create_crd(crd)
                current = session.request("GET", f"{CRDS}/{crd['metadata']['name']}").json
                states = {c["type"]: c["status"] for c in current["status"]["conditions"]}
                assert states["Established"] == "True", (where, states)
                for item in current["spec"]["versions"]:
                    if not item["served"]:
                        continue
                    try:
                        live_through(server, session, current, item["name"])
                    except (AssertionError, ValueError) as error:
                        problems.append(f"{where} at {item['name']}: {str(error)[:600]}")
    assert not problems, "\n".join(problems)
