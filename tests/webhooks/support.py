"""A CRD with two versions that really differ, its converter, and requests to it."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import threading
from collections.abc import Callable
from typing import Any

from instar.base.json_values import Object
from tests.support.crds import crd, fields, version
from tests.support.server import Answer, LiveServer

_numbers = itertools.count(1)
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


def convert(obj: Object, api_version: str) -> Object:
    """v1 has host and port, v2 has hostPort; nothing is lost either way."""
    spec = dict(obj.get("spec") or {})
    if api_version.endswith("/v2") and "host" in spec:
        spec["hostPort"] = f"{spec.pop('host')}:{spec.pop('port', 80)}"
    if api_version.endswith("/v1") and "hostPort" in spec:
        host, _, port = spec.pop("hostPort").rpartition(":")
        spec |= {"host": host, "port": int(port)}
    return {**obj, "apiVersion": api_version, "spec": spec}


_INTEGER = {"type": "integer"}
_STRING = {"type": "string"}
_SPECS: dict[str, Object] = {
    "v1": {"host": _STRING, "port": {"type": "integer", "default": 80}, "replicas": _INTEGER},
    "v2": {"hostPort": _STRING, "replicas": _INTEGER},
}


def _version(name: str, storage: str) -> Object:
    status = fields(replicas=_INTEGER, phase=_STRING)
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    field = ".spec.host" if name == "v1" else ".spec.hostPort"
    return version(
        name,
        fields(spec=fields(**_SPECS[name]), status=status),
        storage=name == storage,
        subresources={"status": {}, "scale": scale},
        selectableFields=[{"jsonPath": field}],
    )


class Widgets:
    """A CRD of its own group on a server, with a conversion given."""

    def __init__(
        self, server: LiveServer, conversion: Object, *, storage: str = "v1", group: str = ""
    ) -> None:
        self.server = server
        self.group = group or f"hook{next(_numbers)}.example.com"
        self.name = f"widgets.{self.group}"
        self.crd = crd(
            _version("v1", storage),
            _version("v2", storage),
            group=self.group,
            plural="widgets",
            kind="Widget",
            names={"singular": "widget"},
            conversion=conversion,
        )
        server.create_crd(self.crd)

    @property
    def crd_path(self) -> str:
        return f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{self.name}"

    def path(self, version: str, name: str = "", namespace: str = "default") -> str:
        path = f"/apis/{self.group}/{version}/namespaces/{namespace}/widgets"
        return f"{path}/{name}" if name else path

    def widget(self, version: str, name: str, port: int = 1, **metadata: Any) -> Object:
        spec: Object = {"host": "h", "port": port} if version == "v1" else {"hostPort": f"h:{port}"}
        return {
            "apiVersion": f"{self.group}/{version}",
            "kind": "Widget",
            "metadata": {"name": name, **metadata},
            "spec": {**spec, "replicas": 1},
        }

    def create(self, version: str, name: str, port: int = 1, **metadata: Any) -> Object:
        answer = self.server.request(
            "POST", self.path(version), self.widget(version, name, port, **metadata)
        )
        assert answer.status == 201, answer.text
        created: Object = answer.json
        return created

    def get(self, version: str, name: str = "", **headers: str) -> Answer:
        return self.server.request("GET", self.path(version, name), headers=headers)

    def patch(self, version: str, name: str, body: Any, media: str = MERGE) -> Answer:
        return self.server.request("PATCH", self.path(version, name), body, content_type=media)

    def change_crd(self, spec: Object) -> Answer:
        answer = self.server.request("PATCH", self.crd_path, {"spec": spec}, content_type=MERGE)
        assert answer.status == 200, answer.text
        return answer

    def store_at(self, version: str) -> None:
        """Make another version the storage version."""
        versions = [_version(name, version) for name in ("v1", "v2")]
        self.change_crd({"versions": versions})

    def get_versions(self) -> list[Object]:
        versions: list[Object] = self.server.request("GET", self.crd_path).json["spec"]["versions"]
        return versions

    def stored(self, name: str) -> Object:
        return self.server.stored(f"{self.group}/widgets/default/{name}")


class Watching:
    """A watch read by a thread; ``lines`` fills up as events arrive."""

    def __init__(self, server: LiveServer, path: str) -> None:
        self.lines: list[Object] = []
        self.ended = False
        self._news = threading.Condition()
        self._connection = server.connection()
        joiner = "&" if "?" in path else "?"
        self._connection.request(
            "GET", f"{path}{joiner}watch=true", headers={"Authorization": f"Bearer {server.token}"}
        )
        self._socket = self._connection.sock
        self._answer = self._connection.getresponse()
        self.status = self._answer.status
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, enough: Callable[[list[Object]], bool]) -> list[Object]:
        with self._news:
            assert self._news.wait_for(lambda: enough(self.lines), 10), self.lines
            return list(self.lines)

    def wait_for_end(self) -> list[Object]:
        with self._news:
            assert self._news.wait_for(lambda: self.ended, 10), self.lines
            return list(self.lines)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join(5)
        self._connection.close()

    def _read(self) -> None:
        try:
            for line in self._answer:
                with self._news:
                    self.lines.append(json.loads(line))
                    self._news.notify_all()
        except (OSError, ValueError, AttributeError):
            pass
        with self._news:
            self.ended = True
            self._news.notify_all()


def metrics(server: LiveServer) -> dict[str, float]:
    """``name{labels}`` to value, of the page as it is now."""
    text = server.request("GET", "/metrics").text
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found[name] = float(value)
    return found
