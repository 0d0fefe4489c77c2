"""Requests out of material: which verb, on what, with which options, and what is wrong with it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from random import Random
from typing import Any
from urllib.parse import quote

import orjson

from instar.base.json_values import Object
from tests.fuzz import mutation
from tests.fuzz.case import Case, request
from tests.fuzz.consoles import Consoles
from tests.fuzz.framing import broken, chunked
from tests.fuzz.hooks import Hooks
from tests.fuzz.material import CRDS, SELECTORS, Material, Resource
from tests.fuzz.mutation import INTERESTING, TOKENS, number
from tests.fuzz.owners import owner_case
from tests.fuzz.placeholders import TOKEN
from tests.fuzz.protobufs import Protobufs
from tests.fuzz.schemas import Costly, changed_crd, own_crd, own_number, own_object, own_path
from tests.fuzz.strangers import stranger_case

Header = tuple[str, str]
_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
_PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_ACCEPTS = (
    "application/json", "application/yaml", _TABLE, _PARTIAL, _PROTOBUF, "*/*", "text/html",
    f"{_PROTOBUF};as=Table;g=meta.k8s.io;v=v1", "application/yaml;as=Table;g=meta.k8s.io;v=v1",
    "application/json;stream=watch", f"{_PARTIAL}List,application/json", ";;,=,", "a/b;q=1e9",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", "application/json;as=Table;v=v9",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
)  # fmt: skip
_PATCHES = (
    "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml",
    "application/strategic-merge-patch+json", "application/apply-patch+cbor",
)  # fmt: skip
_OTHER_HEADERS = ("Audit-ID", "X-Forwarded-For", "If-Match", "Expect", "Cookie", "Range")
_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test", "x")
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE", "XYZ")
_DOCUMENTS = (
    "/", "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/openapi/v2", "/openapi/v3",
    "/openapi/v3/api/v1", "/openapi/v3/apis/fuzz.example.com/v1", "/version", "/metrics", "/readyz",
    "/readyz?verbose", "/livez/ping", "/healthz", "/instar/census", "/instar/usage", "/apis/nobody",
)  # fmt: skip
_QUERIES: dict[str, tuple[str, ...]] = {
    "limit": ("1", "2", "0", "-1", "1e3", "9" * 30, ""),
    "continue": ("", "x", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0"),
    "resourceVersion": ("0", "1", "-1", "x", "9" * 20, "00", "1_0", "５"),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x", ""),
    "timeoutSeconds": ("0", "1", "-1", "x", "9" * 30),
    "labelSelector": SELECTORS,
    "fieldSelector": SELECTORS,
    "watch": ("1", "true", "false", "x"),
    "allowWatchBookmarks": ("1", "x"),
    "sendInitialEvents": ("true", "false", "x"),
    "pretty": ("true", "1", "x"),
    "fieldManager": ("m", "", "x" * 129, "\x00", "é"),
    "fieldValidation": ("Strict", "Warn", "Ignore", "x"),
    "force": ("true", "false", "x"),
    "dryRun": ("All", "x", ""),
    "gracePeriodSeconds": ("0", "-1", "30", "x", "9" * 30),
    "propagationPolicy": ("Orphan", "Foreground", "Background", "x"),
    "orphanDependents": ("true", "x"),
    "includeObject": ("Object", "None", "Metadata", "x"),
    "timeout": ("1s", "0s", "x", "-1h", "9" * 30 + "h", "1ns"),
    "ignoreStoreReadErrorWithClusterBreakingPotential": ("true", "x"),
}
_SUBRESOURCES = ("status", "scale", "finalize", "binding", "eviction", "token", "log", "exec", "x")


class Maker:
    """An endless stream of cases, the same for the same seed."""

    def __init__(self, material: Material, chance: Random) -> None:
        self._material, self._chance = material, chance
        self._samples = [resource.sample for resource in material.resources]
        self._protobufs, self._consoles = Protobufs(), Consoles(material)
        self._hooks, self._costly = Hooks(material), Costly()
        self._kinds: tuple[tuple[int, Callable[[], Case]], ...] = (
            (30, self._object_request),
            (14, self._patch),
            (16, self._read),
            (3, self._crd),
            (10, self._own),
            (6, self._document),
            (4, self._protobuf),
            (3, self._strange_path),
            (3, self._pipelined),
            (3, self._broken),
            (3, self._credential),
            (6, self._costly_request),
            (8, lambda: self._protobufs.case(chance)),
            (6, lambda: owner_case(chance)),
            (8, lambda: self._hooks.case(chance)),
            (4, lambda: self._consoles.case(chance)),
            (14, lambda: stranger_case(chance, self._any)),
        )
        self._plain = self._kinds[:-1]
        self._weights = [weight for weight, _ in self._kinds]

    def case(self) -> Case:
        (kind,) = self._chance.choices(self._kinds, self._weights)
        return kind[1]()

    def _any(self) -> Case:
        """Of any kind but a stranger's."""
        return self._chance.choices(self._plain, self._weights[:-1])[0][1]()

    # --- pieces ------------------------------------------------------------------------------

    def _resource(self) -> tuple[int, Resource]:
        at = self._chance.randrange(len(self._material.resources))
        return at, self._material.resources[at]

    def _maybe(self, likelihood: float) -> bool:
        return self._chance.random() < likelihood

    def _headers(self, content: str = "") -> list[Header]:
        found = [("Host", "x"), ("Authorization", f"Bearer {TOKEN.decode()}")]
        if content:
            found.append(("Content-Type", content))
        if self._maybe(0.3):
            found.append(("Accept", self._chance.choice(_ACCEPTS)))
        if self._maybe(0.05):
            found.append(("Accept-Encoding", self._chance.choice(("gzip", "*", "gzip;q=0", "br"))))
        if self._maybe(0.03):
            found.append(("User-Agent", self._line("kubectl/v1 (x)")))
        if self._maybe(0.03):
            name = self._chance.choice(
                ("Audit-ID", "X-Forwarded-For", "If-Match", "Expect", "Cookie")
            )
            found.append((name, self._line("a")))
        return found

    def _line(self, given: str) -> str:
        changed = mutation.text(self._chance, given, TOKENS["path"], 200)
        return "".join(char for char in changed if char.isprintable() and char < "\u0100")

    def _query(self, likely: tuple[str, ...] = (), likelihood: float = 0.35) -> str:
        pairs: list[str] = []
        while self._maybe(likelihood) and len(pairs) < 5:
            name = self._chance.choice(likely or tuple(_QUERIES))
            value = self._chance.choice(_QUERIES[name])
            if self._maybe(0.25):
                kind = "selector" if name.endswith("Selector") else "number"
                value = mutation.text(self._chance, value, TOKENS[kind])
            elif name == "continue" and self._maybe(0.5):
                value = base64.urlsafe_b64encode(json.dumps(self._token()).encode()).decode()
            pairs.append(f"{name}={quote(value, errors='surrogatepass')}")
        return "?" + "&".join(pairs) if pairs else ""

    def _token(self) -> Any:
        good = {"v": "meta.k8s.io/v1", "rv": 5, "start": "default/a\u0000"}
        return mutation.value(self._chance, good, self._samples)

    def _json(self, value: Any) -> bytes:
        try:
            data = orjson.dumps(value)
        except (TypeError, orjson.JSONEncodeError):
            data = json.dumps(value).encode("utf-8", "surrogatepass")
        if self._maybe(0.12):
            text = data.decode("utf-8", "replace")
            changed = mutation.text(self._chance, text, TOKENS["json"], 20_000)
            return changed.encode("utf-8", "surrogatepass")
        return mutation.binary(self._chance, data) if self._maybe(0.03) else data

    def _written(self, at: int, value: Any) -> tuple[bytes, str]:
        """A body and its media type."""
        if self._maybe(0.15):
            given = self._material.yamls[at]
            text = mutation.text(self._chance, given, TOKENS["yaml"], 20_000)
            return text.encode("utf-8", "surrogatepass"), "application/yaml"
        media = "application/json" if self._maybe(0.95) else self._chance.choice(_ACCEPTS)
        return self._json(value), media

    def _sent(self, method: str, target: str, content: str, body: bytes | None) -> Case:
        headers = self._headers(content)
        if body and self._maybe(0.05):
            return Case(chunked(self._chance, method, target, headers, body))
        return Case(request(method, target, headers, body))

    def _changed(self, sample: Object) -> Any:
        if self._maybe(0.2):
            return sample
        return mutation.value(self._chance, sample, self._samples)

    def _name(self, obj: Any) -> str:
        if self._maybe(0.85):
            return self._chance.choice(("a", "a", "b", "c"))
        metadata = obj.get("metadata") if isinstance(obj, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else "a"
        return quote(str(name)[:300], safe="", errors="surrogatepass")

    # --- kinds of requests -------------------------------------------------------------------

    def _object_request(self) -> Case:
        at, resource = self._resource()
        obj = self._changed(resource.sample)
        if isinstance(obj, dict) and self._maybe(0.7) and isinstance(obj.get("metadata"), dict):
            obj = {**obj, "metadata": {**obj["metadata"], "name": self._chance.choice("abc")}}
        body, media = self._written(at, obj)
        query = self._query(("dryRun", "fieldValidation", "fieldManager", "timeout", "pretty"))
        if self._maybe(0.6):
            return self._sent("POST", resource.path + query, media, body)
        name = self._name(obj)
        part = f"/{self._chance.choice(_SUBRESOURCES)}" if self._maybe(0.2) else ""
        if self._maybe(0.75):
            return self._sent("PUT", f"{resource.path}/{name}{part}{query}", media, body)
        method = self._chance.choice(_METHODS)
        return self._sent(method, f"{resource.path}/{name}{part}{query}", media, body)

    def _patch(self) -> Case:
        _, resource = self._resource()
        kind = self._chance.choice(_PATCHES)
        likely: tuple[str, ...] = ("dryRun", "fieldValidation", "force", "fieldManager", "timeout")
        query = self._query(likely)
        if "apply" in kind and "fieldManager=" not in query:
            query += (
                "&" if query else "?"
            ) + f"fieldManager={self._chance.choice('mno')}&force=true"
        if "json-patch" in kind:
            value: Any = self._operations(resource.sample)
        else:
            value = self._changed(resource.sample)
            if "apply" not in kind and isinstance(value, dict) and self._maybe(0.7):
                value = {key: value[key] for key in value if self._maybe(0.5)}
        part = f"/{self._chance.choice(_SUBRESOURCES)}" if self._maybe(0.2) else ""
        target = f"{resource.path}/{self._name(value)}{part}{query}"
        return self._sent("PATCH", target, kind, self._json(value))

    def _operations(self, sample: Object) -> Any:
        found = []
        for _ in range(number(self._chance, 8)):
            path, value = "", sample
            while isinstance(value, dict | list) and value and self._maybe(0.8):
                keys: Any = list(value) if isinstance(value, dict) else range(len(value))
                key = self._chance.choice(keys)
                path += "/" + str(key).replace("~", "~0").replace("/", "~1")
                value = value[key]
            operation = self._chance.choice(
                ("add", "remove", "replace", "move", "copy", "test", "x")
            )
            given = self._chance.choice((value, *INTERESTING))
            end = self._chance.choice(("", "", "/-", "/0", "/-1", "/99999999999", "~", "/a"))
            found.append({"op": operation, "path": path + end, "from": path, "value": given})
        return found if self._maybe(0.8) else mutation.value(self._chance, found, self._samples)

    def _read(self) -> Case:
        _, resource = self._resource()
        method = "GET" if self._maybe(0.75) else self._chance.choice(("DELETE", "HEAD", "DELETE"))
        where = "" if self._maybe(0.6) else f"/{self._chance.choice('abcd')}"
        if method == "DELETE" and not where and self._maybe(0.8):
            where = "/b"
        if where and self._maybe(0.2):
            where += f"/{self._chance.choice(_SUBRESOURCES)}"
        target = resource.path + where + self._query(likelihood=0.6)
        if method == "DELETE" and self._maybe(0.3):
            options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0,
                       "preconditions": {"uid": "x", "resourceVersion": "1"}}  # fmt: skip
            return self._sent(
                method, target, "application/json", self._json(self._changed(options))
            )
        if "watch=" in target and "timeoutSeconds=" not in target:
            target += "&timeoutSeconds=1"
        return self._sent(method, target, "", None)

    def _crd(self) -> Case:
        crd = changed_crd(self._chance, self._material, self._samples)
        body = self._json(crd)
        query = self._query(("dryRun", "fieldValidation", "timeout"), 0.5)
        return self._sent("POST", CRDS + query, "application/json", body)

    def _own(self) -> Case:
        """The fuzzer's own CRDs, whose schemas are wrong in some way, and objects of them."""
        step, at = self._chance.randrange(16), own_number(self._chance)
        crd = own_crd(self._chance, at, self._material, self._samples)
        name = crd["metadata"]["name"]
        if step == 0:
            return self._sent("POST", CRDS, "application/json", self._json(crd))
        if step == 1:
            body = self._json({"spec": crd["spec"]})
            return self._sent("PATCH", f"{CRDS}/{name}", _PATCHES[0], body)
        if step == 2:
            return self._sent("DELETE", f"{CRDS}/{name}", "", None)
        path = own_path(self._chance, at)
        if step < 10:
            obj = own_object(self._chance, at, self._samples)
            return self._sent("POST", path, "application/json", self._json(obj))
        headers = [*self._headers(), ("Accept", self._chance.choice((_TABLE, "application/yaml")))]
        return Case(request("GET", path + self._query(likelihood=0.3), headers, None))

    def _costly_request(self) -> Case:
        if self._maybe(0.08):
            crd = self._costly.installed(self._chance)
            target = f"{CRDS}/{crd['metadata']['name']}?fieldManager=fuzz&force=true"
            return self._sent("PATCH", target, _PATCHES[2], self._json(crd))
        path, obj = self._costly.met(self._chance)
        body, where = self._json(obj), f"{path}/{obj['metadata']['name']}"
        match self._chance.randrange(6):
            case 0 | 1 | 2:
                return self._sent("POST", path, "application/json", body)
            case 3:
                return self._sent("PATCH", where, _PATCHES[0], body)
            case 4:
                target = f"{where}?fieldManager=m&force=true"
                return self._sent("PATCH", target, _PATCHES[2], body)
        return self._sent(self._chance.choice(("GET", "DELETE")), where, "", None)

    def _document(self) -> Case:
        target = self._chance.choice(_DOCUMENTS)
        method = "GET" if self._maybe(0.9) else self._chance.choice(_METHODS)
        return self._sent(method, target, "", b"{}" if self._maybe(0.1) else None)

    def _protobuf(self) -> Case:
        path, message = self._chance.choice(self._material.messages)
        body = mutation.binary(self._chance, message)
        if self._maybe(0.3):
            return self._sent("PUT", f"{path}/a", _PROTOBUF, body)
        return self._sent("POST", path + self._query(("dryRun",), 0.5), _PROTOBUF, body)

    def _strange_path(self) -> Case:
        _, resource = self._resource()
        given = self._chance.choice((resource.path, f"{resource.path}/a/status", *_DOCUMENTS))
        text = mutation.text(self._chance, given, TOKENS["path"])
        path = quote(text, safe="/%?#&=+;:@,!$'()*[]~", errors="surrogatepass")
        return self._sent(self._chance.choice(_METHODS), f"/{path}", "", None)

    def _pipelined(self) -> Case:
        count = 2 + number(self._chance, 5)
        made = [self._read() for _ in range(count)]
        calm = [case for case in made if b"watch=" not in case.data and case.method != b"HEAD"]
        return Case(b"".join(case.data for case in calm), len(calm)) if calm else self._read()

    def _broken(self) -> Case:
        return Case(broken(self._chance, self._object_request().data), 0)

    def _credential(self) -> Case:
        _, resource = self._resource()
        headers: list[Header] = [("Host", "x")]
        jwt = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0."
        for name, value in (
            ("Authorization", self._chance.choice((f"Bearer {TOKEN.decode()}", f"Bearer {jwt}"))),
            ("Impersonate-User", "system:serviceaccount:default:a"),
            ("Impersonate-Group", "system:masters"),
            ("Impersonate-Extra-a%2fb", "x"),
            ("X-Remote-User", "admin"),
        ):
            if self._maybe(0.4):
                headers.append((name, self._line(value)))
        body = self._json(self._changed(resource.sample)) if self._maybe(0.5) else None
        return Case(request("POST" if body else "GET", resource.path, headers, body))
