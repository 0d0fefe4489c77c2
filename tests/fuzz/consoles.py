"""Requests to the web console: its pages, sessions, views, and the API behind its header."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.fuzz import mutation
from tests.fuzz.case import Case, request
from tests.fuzz.material import CRDS, GROUP, SAMPLE, Material, sample_crd
from tests.fuzz.mutation import TOKENS
from tests.fuzz.placeholders import TOKEN

_NAME = f"samples.{GROUP}"
_READS = (
    "", "/", "/index.html", "/assets/x.js", "/..%2fetc", "/session", "/login/oidc",
    "/login/oidc/callback?code=a&state=b", "/api/overview", "/api/webhooks", "/api/rules",
    "/api/laws", f"/api/crds/{_NAME}/versions", f"/api/crds/{_NAME}/versions?days=5",
    f"/api/crds/{_NAME}/fields?most=10", f"/api/crds/{_NAME}/migration?plan=1",
    f"/api/crds/{_NAME}/objects/default/a", f"/api/crds/hookeds.{GROUP}/objects/hooked/a",
    "/api/crds/x/versions", "/api/crds//versions", f"/api/crds/{_NAME}/objects//a",
)  # fmt: skip
_ACTIONS = (
    f"/api/crds/{_NAME}/migration/start", f"/api/crds/{_NAME}/migration/pause",
    f"/api/crds/{_NAME}/migration/resume", f"/api/crds/{_NAME}/migration/verify",
    f"/api/crds/{_NAME}/migration/trim", f"/api/crds/{_NAME}/versions/v2/remove",
    f"/api/crds/{_NAME}/versions/v1/deprecate", f"/api/crds/{_NAME}/versions/v2/stop-serving",
    f"/api/crds/{_NAME}/versions/v1/serve", f"/api/crds/{_NAME}/versions/v1/store", "/session",
    "/api/convert", "/api/convert", "/api/nothing",
)  # fmt: skip
_JOBS = ("/api/review", "/api/review?form=html", "/api/review?form=markdown", "/api/check")


class Consoles:
    def __init__(self, material: Material) -> None:
        self._material = material

    def case(self, chance: Random) -> Case:
        kind = chance.random()
        if kind < 0.5:
            path = self._path(chance, chance.choice(_READS))
            return self._sent(chance, "GET", f"/console{path}", None)
        if kind < 0.6:  # what the page asks of the API itself
            target = chance.choice((CRDS, "/api/v1/secrets", "/apis", self._path(chance, "/api")))
            return self._sent(chance, "GET", target, None)
        path = chance.choice(_ACTIONS) if kind < 0.995 else chance.choice(_JOBS)
        method = "POST" if chance.random() < 0.9 else chance.choice(("PUT", "DELETE", "PATCH"))
        return self._sent(chance, method, f"/console{self._path(chance, path)}", self._body(chance))

    def _path(self, chance: Random, path: str) -> str:
        if chance.random() < 0.7:
            return path
        changed = mutation.text(chance, path, TOKENS["path"], 300)
        return "".join(char for char in changed if "!" <= char <= "~")

    def _body(self, chance: Random) -> bytes:
        crd = sample_crd()
        values: tuple[Any, ...] = (
            {"token": "x"}, {"dryRun": True, "warning": "w"}, {},
            {"crd": json.dumps(crd), "old": json.dumps(crd), "new": json.dumps(crd)},
            {"crd": _NAME, "object": SAMPLE, "to": "v2", "version": "v2"},
            {"object": json.dumps(SAMPLE), "versions": ["v1", "v2"], "name": _NAME},
        )  # fmt: skip
        value = chance.choice(values)
        if chance.random() < 0.7:
            value = mutation.value(chance, value, [*self._material.crds[:3], SAMPLE])
        data = json.dumps(value).encode("utf-8", "surrogatepass")
        return mutation.binary(chance, data) if chance.random() < 0.1 else data

    def _sent(self, chance: Random, method: str, target: str, body: bytes | None) -> Case:
        headers = [("Host", "x")]
        if chance.random() < 0.9:
            headers.append(("Authorization", f"Bearer {TOKEN.decode()}"))
        else:
            headers.append(("Cookie", mutation.text(chance, "instar=abc", TOKENS["path"], 50)))
            headers[-1] = ("Cookie", "".join(c for c in headers[-1][1] if " " <= c <= "~"))
        if chance.random() < 0.9:
            headers.append(("x-instar-console", "1"))
        if chance.random() < 0.1:
            site = chance.choice(("same-origin", "cross-site", "none", "x"))
            headers.append(("Sec-Fetch-Site", site))
        if body is not None:
            headers.append(("Content-Type", "application/json"))
        return Case(request(method, target, headers, body))
