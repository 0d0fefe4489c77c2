"""Requests of ``bench/releases.py`` to one server; keeps what it answered in a normal form.

Revisions and managedFields are left out: when a version is removed, instar keeps the owners at
other versions, which kube-apiserver drops (docs/reference/differences.md). Waits where a
kube-apiserver takes up a change in its own time. ``tests/recordings`` has the normal form.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from functools import partial
from http.client import TOO_MANY_REQUESTS
from typing import Any, NamedTuple

from instar.base.json_values import Object
from tests.recordings.normalising import Normaliser, without_order
from tests.recordings.playing import PlayedServer

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_MERGE, _JSON = "application/merge-patch+json", "application/json"
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_PATIENCE, _BREATH = 30.0, 0.02
_SETTLING = 1.5
"""Seconds after which a kube-apiserver serves changed CRDs, and no longer what they dropped."""
Asked = dict[str, Any]
"""A request, and the normal form of its answer."""


class Home(NamedTuple):
    """Paths of a custom resource at one version."""

    discovery: str
    objects: str


class ReleaseClient:
    def __init__(self, server: PlayedServer) -> None:
        self._server = server
        self._connection = server.connect()
        self._normaliser = Normaliser(managed=False, chance={})
        self.rows: list[Asked] = []
        self.step = ""

    def home(self, crd: Object, version: str) -> Home:
        spec = crd["spec"]
        place = "/namespaces/default" if spec["scope"] == "Namespaced" else ""
        group = f"/apis/{spec['group']}/{version}"
        return Home(group, f"{group}{place}/{spec['names']['plural']}")

    def ask(
        self, method: str, path: str, body: Object | None = None, *, table: bool = False
    ) -> int:
        """Send a request whose answer is compared."""
        code, headers, text = self._send(method, path, body, table=table)
        until = time.monotonic() + _PATIENCE
        while code == TOO_MANY_REQUESTS and time.monotonic() < until:
            time.sleep(_BREATH)
            code, headers, text = self._send(method, path, body, table=table)
        self._normaliser.step = str(len(self.rows))
        told = self._normaliser.answer(code, headers, text)
        if path.startswith(_CRDS) and code < 300 and method in ("POST", "PUT"):
            told = {name: told[name] for name in ("code", "warnings") if name in told}
        elif "resources" in told.get("body", {}):  # kube-apiserver lists them in any order
            told["body"]["resources"].sort(key=lambda each: str(each["name"]))
        told = without_order(_without_revisions(told))
        self.rows.append({"step": self.step, "ask": f"{method} {path}", "of": "", **told})
        return code

    def read(self, path: str) -> Object | None:
        """Return an object; its answer is not compared."""
        code, _, text = self._send("GET", path)
        return json.loads(text) if code == 200 else None

    def write_crd(self, crd: Object) -> int:
        path = f"{_CRDS}/{crd['metadata']['name']}"
        stored = self.read(path)
        if stored is None:
            return self.ask("POST", _CRDS, crd)
        revision = stored["metadata"]["resourceVersion"]
        return self.ask(
            "PUT", path, {**crd, "metadata": {**crd["metadata"], "resourceVersion": revision}}
        )

    def read_crd(self, name: str) -> Object | None:
        """Read a CRD, and compare it."""
        self.ask("GET", f"{_CRDS}/{name}")
        return self.read(f"{_CRDS}/{name}")

    def replace_as_read(self, path: str) -> None:
        stored = self.read(path)
        if stored is not None:
            self.ask("PUT", path, stored)

    def migrate(self, name: str) -> None:
        """Write every object of a CRD, and forget its former storage versions."""
        crd = self.read(f"{_CRDS}/{name}")
        assert crd is not None
        stored = next(each["name"] for each in crd["spec"]["versions"] if each["storage"])
        home = self.home(
            crd, next(each["name"] for each in crd["spec"]["versions"] if each["served"])
        )
        for obj in (self.read(home.objects) or {}).get("items", ()):
            self.replace_as_read(f"{home.objects}/{obj['metadata']['name']}")
        self.ask("PATCH", f"{_CRDS}/{name}/status", {"status": {"storedVersions": [stored]}})

    def remove_crd(self, name: str) -> None:
        self._send("DELETE", f"{_CRDS}/{name}")
        self._until(lambda: self.read(f"{_CRDS}/{name}") is None)

    def settle(self, crds: Iterable[Object]) -> None:
        """Wait until the server serves what was written."""
        for crd in crds:
            self._until(partial(self._is_decided, crd["metadata"]["name"]))
        if self._server.real:
            time.sleep(_SETTLING)

    def _is_decided(self, name: str) -> bool:
        crd = self.read(f"{_CRDS}/{name}")
        conditions = (crd or {}).get("status", {}).get("conditions") or ()
        return crd is None or any(each["type"] == "Established" for each in conditions)

    def _until(self, holds: Callable[[], bool]) -> None:
        until = time.monotonic() + _PATIENCE
        while not holds():
            if time.monotonic() > until:
                raise TimeoutError(f"{self._server.url} does not take up {self.step}")
            time.sleep(_BREATH)

    def _send(
        self, method: str, path: str, body: Object | None = None, *, table: bool = False
    ) -> tuple[int, dict[str, list[str]], str]:
        headers = {"User-Agent": "recorder", **self._server.headers}
        if table:
            headers["Accept"] = _TABLE
        if body is not None:
            headers["Content-Type"] = _MERGE if method == "PATCH" else _JSON
        text = None if body is None else json.dumps(body).encode()
        self._connection.request(method, path, body=text, headers=headers)
        answer = self._connection.getresponse()
        told: dict[str, list[str]] = {}
        for name, value in answer.getheaders():
            told.setdefault(name.lower(), []).append(value)
        return answer.status, told, answer.read().decode()


def _without_revisions(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _without_revisions(each)
            for name, each in value.items()
            if name != "resourceVersion"
        }
    return [_without_revisions(each) for each in value] if isinstance(value, list) else value
