"""Two servers for tests of ``server/cluster_home``: instar as main cluster, and instar that serves
groups of it. The tests are the aggregation layer: they hold the proxy's certificate."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import orjson

from instar.base.certificates import Authority, KeyPair
from instar.server.access.identities import FrontProxySettings
from instar.server.registry.controllers.controller_names import CONTROLLERS_HERE, QUOTAS
from instar.server.settings import ClusterSettings
from tests.support.server import Answer, LiveServer, live_server
from tests.support.waiting import eventually

GROUP = "agg.example.com"
MASTERS = "system:masters"
_DAY = timedelta(days=1)


class Aggregated(NamedTuple):
    """A main cluster, the server behind it, and what identifies the aggregation layer."""

    main: LiveServer
    served: LiveServer
    proxies: Authority
    folder: Path
    stop_main: Callable[[], None]

    def proxied(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        user: str = "admin",
        groups: tuple[str, ...] = (MASTERS,),
        headers: tuple[tuple[str, str], ...] = (),
        content_type: str = "application/json",
    ) -> Answer:
        """Send a request as the aggregation layer sends it."""
        told = [("X-Remote-User", user), *(("X-Remote-Group", group) for group in groups)]
        return self.as_peer(
            self.proxies.client("aggregator", (), _DAY),
            method,
            path,
            body,
            (*told, *headers, ("Content-Type", content_type)),
        )

    def as_peer(
        self,
        peer: KeyPair,
        method: str,
        path: str,
        body: Any = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> Answer:
        """Send a request with a client certificate."""
        connection = self.connection(peer)
        data = body if body is None or isinstance(body, bytes) else orjson.dumps(body)
        try:
            connection.putrequest(method, path)
            for name, value in headers:
                connection.putheader(name, value)
            if data is not None:
                connection.putheader("Content-Length", str(len(data)))
            connection.endheaders(data)
            answer = connection.getresponse()
            return Answer(answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()

    def connection(self, peer: KeyPair) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cadata=self.served.ca.decode())
        file = self.folder / "peer.pem"
        file.write_bytes(peer.cert + peer.key)
        context.load_cert_chain(file)
        parts = urlsplit(self.served.url)
        return http.client.HTTPSConnection(
            cast(str, parts.hostname), parts.port, context=context, timeout=30
        )

    def create(self, path: str, obj: dict[str, Any]) -> dict[str, Any]:
        """Create an object in the main cluster."""
        answer = self.main.request("POST", path, obj)
        assert answer.status == 201, answer.text
        return cast(dict[str, Any], answer.json)

    def serves(self, path: str) -> None:
        """Wait until the path is served behind the main cluster."""
        eventually(lambda: self.proxied("GET", path).status == 200)


def crd(plural: str = "reports", kind: str = "Report", group: str = GROUP) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def report(name: str, size: int = 1, namespace: str = "default") -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Report",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"size": size},
    }


REPORTS = f"/apis/{GROUP}/v1/namespaces/default/reports"


@contextmanager
def aggregated(folder: Path, **settings: Any) -> Iterator[Aggregated]:
    """Both servers, with the CRD of reports. ``settings`` are those of the second server."""
    proxies = Authority.make("front-proxy-ca", _DAY)
    ca = folder / "proxies.crt"
    ca.write_bytes(proxies.pem.cert)
    proxy = FrontProxySettings(
        ca=ca,
        names=("aggregator",),
        user_headers=("X-Remote-User",),
        group_headers=("X-Remote-Group",),
        extra_prefixes=("X-Remote-Extra-",),
    )
    with ExitStack() as stack:
        main = stack.enter_context(
            live_server(
                bootstrap_objects=True,
                front_proxy=proxy,
                cert_dir=folder / "main",
                controllers=CONTROLLERS_HERE - {QUOTAS},  # its own would count its own objects
            )
        )
        path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
        eventually(lambda: main.request("GET", path).status == 200)
        main.create_crd(crd())
        joined = ClusterSettings(kubeconfig=str(main.kubeconfig), groups=(GROUP,))
        with live_server(cluster=joined, cert_dir=folder / "served", **settings) as served:
            yield Aggregated(main, served, proxies, folder, stack.close)
