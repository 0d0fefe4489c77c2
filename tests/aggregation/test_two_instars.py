"""One instar behind another: every verb of a CRD's objects, through the proxy."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme

from instar.server.access.identities import FrontProxySettings
from instar.server.aggregation.backends import Backends
from instar.server.settings import AggregationSettings
from tests.aggregation.backend import Backend
from tests.aggregation.support import APIS, add_service, api_service, register, remote, wait_for
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

_GROUP = "far.example.com"
_HOME = f"/apis/{_GROUP}/v1/namespaces/default/widgets"
_MERGE = "application/merge-patch+json"


class _Two(NamedTuple):
    main: LiveServer
    far: LiveServer


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Two]:
    folder = tmp_path_factory.mktemp("main")
    with (
        live_server(cert_dir=folder, bootstrap_objects=True) as main,
        live_server(
            front_proxy=_trusting(folder / "front-proxy-ca.crt"),
            extra_names=("far.default.svc",),
        ) as far,
    ):
        far.create_crd(_crd())
        port = int(far.url.rpartition(":")[2])
        add_service(main, "far", type="ExternalName", externalName="localhost")
        bundle = base64.b64encode(far.ca).decode()
        obj = api_service(_GROUP, service=remote(port, "far"), caBundle=bundle)
        assert main.request("POST", APIS, obj).status == 201
        wait_for(main, f"v1.{_GROUP}", "True")
        yield _Two(main, far)


def _trusting(ca: Path) -> FrontProxySettings:
    return FrontProxySettings(
        ca=ca,
        names=("front-proxy-client",),
        user_headers=("X-Remote-User",),
        uid_headers=("X-Remote-Uid",),
        group_headers=("X-Remote-Group",),
        extra_prefixes=("X-Remote-Extra-",),
    )


def _crd() -> dict[str, Any]:
    properties = {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                }
            ],
        },
    }


def _widget(name: str, size: int = 1) -> dict[str, Any]:
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": size},
    }


def test_every_verb_goes_through(two: _Two) -> None:
    main = two.main
    made = main.request("POST", _HOME, _widget("a"))
    again = main.request("POST", _HOME, _widget("a"))
    read = main.request("GET", f"{_HOME}/a")
    patched = main.request("PATCH", f"{_HOME}/a", {"spec": {"size": 2}}, content_type=_MERGE)
    applied = main.request(
        "PATCH",
        f"{_HOME}/b?fieldManager=me",
        _widget("b"),
        content_type="application/apply-patch+yaml",
    )
    listed = main.request("GET", _HOME)
    stale = main.request("PUT", f"{_HOME}/a", {**_widget("a"), "metadata": made.json["metadata"]})
    gone = main.request("DELETE", f"{_HOME}/a")
    rest = main.request("DELETE", _HOME)

    answers = [made, again, read, patched, applied, listed, stale, gone, rest]
    codes = [201, 409, 200, 200, 201, 200, 409, 200, 200]
    assert [answer.status for answer in answers] == codes
    assert [one["metadata"]["name"] for one in listed.json["items"]] == ["a", "b"]
    assert two.far.request("GET", _HOME).json["items"] == []


def test_a_watch_through_both_has_its_events(two: _Two) -> None:
    """Line 23."""
    revision = two.main.request("GET", _HOME).json["metadata"]["resourceVersion"]
    watching = two.main.connection()
    bearer = {"Authorization": f"Bearer {two.main.token}"}
    watching.request("GET", f"{_HOME}?watch=1&resourceVersion={revision}", headers=bearer)
    stream = watching.getresponse()

    two.far.request("POST", _HOME, _widget("watched"))
    event = json.loads(stream.readline())

    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "watched")
    watching.close()


def test_the_far_server_knows_the_user_and_its_groups(two: _Two) -> None:
    """Lines 14 and 18: both servers judge, each by its own rules."""
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "far"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "far"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "far",
        },
        "subjects": [{"kind": "Group", "name": "readers", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    home = "/apis/rbac.authorization.k8s.io/v1"
    as_joe = {"Impersonate-User": "joe", "Impersonate-Group": "readers"}
    for server in (two.main,):
        server.request("POST", f"{home}/clusterroles", role)
        server.request("POST", f"{home}/clusterrolebindings", binding)

    refused = two.main.request("GET", _HOME, headers=as_joe)
    two.far.request("POST", f"{home}/clusterroles", role)
    two.far.request("POST", f"{home}/clusterrolebindings", binding)
    allowed = two.main.request("GET", _HOME, headers=as_joe)

    assert refused.status == 403
    assert 'User "joe" cannot list resource "widgets"' in refused.json["message"]
    assert allowed.status == 200


def test_discovery_and_openapi_are_those_of_the_far_server(two: _Two) -> None:
    """Lines 30, 35 and 36."""
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

    def look() -> list[dict[str, Any]]:
        items = two.main.request("GET", "/apis", headers={"Accept": accept}).json["items"]
        (group,) = [one for one in items if one["metadata"]["name"] == _GROUP]
        found: list[dict[str, Any]] = group["versions"][0].get("resources") or []
        return found

    (resource,) = eventually(look)
    key = f"apis/{_GROUP}/v1"
    index = eventually(
        lambda: (found := two.main.request("GET", "/openapi/v3").json["paths"]) and key in found
        and found
    )  # fmt: skip
    document = two.main.request("GET", index[key]["serverRelativeURL"])
    swagger = eventually(
        lambda: (
            (found := two.main.request("GET", "/openapi/v2").json)
            and "com.example.far.v1.Widget" in found["definitions"]
            and found
        )
    )
    binary = two.main.request(
        "GET",
        "/openapi/v2",
        headers={"Accept": "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"},
    )

    assert (resource["resource"], resource["shortNames"]) == ("widgets", ["wd"])
    assert resource["responseKind"] == {"group": _GROUP, "version": "v1", "kind": "Widget"}
    assert "com.example.far.v1.Widget" in document.json["components"]["schemas"]
    assert not [name for name in swagger["definitions"] if name.endswith("_v2")]
    assert b"com.example.far.v1.Widget" in binary.body
    assert "hash=" in index["apis/apps/v1"]["serverRelativeURL"]


def test_the_front_proxy_is_published_for_backends(two: _Two) -> None:
    """Line 18: extension-apiserver-authentication."""
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"

    data = eventually(
        lambda: (answer := two.main.request("GET", path)).status == 200 and answer.json["data"]
    )

    assert data["requestheader-allowed-names"] == '["front-proxy-client"]'
    assert data["requestheader-username-headers"] == '["X-Remote-User"]'
    assert "BEGIN CERTIFICATE" in data["requestheader-client-ca-file"]
    assert data["requestheader-client-ca-file"] != data["client-ca-file"]


def test_a_changed_client_certificate_is_shown_to_backends(tmp_path: Path) -> None:
    """Line 18."""
    authority = trustme.CA()
    cert, key = tmp_path / "proxy.crt", tmp_path / "proxy.key"

    def write(name: str) -> None:
        made = authority.issue_cert(common_name=name)
        cert.write_bytes(made.cert_chain_pems[0].bytes())
        key.write_bytes(made.private_key_pem.bytes())

    write("first")
    settings = AggregationSettings(client_cert=cert, client_key=key)
    with live_server(aggregation=settings) as main, Backend() as backend:
        backend.trust(authority.cert_pem.bytes())
        register(main, backend, "rotated.example.com")
        aggregator = main.running.machinery.aggregator
        assert aggregator is not None
        home = "/apis/rotated.example.com/v1"
        main.request("GET", f"{home}/before")

        write("second")
        changed = main.run(_look(aggregator.backends))
        main.request("GET", f"{home}/after")

        assert changed
        assert backend.last(f"{home}/before").peer == "first"
        assert backend.last(f"{home}/after").peer == "second"


async def _look(backends: Backends) -> bool:
    return backends.look_at_certificate()
