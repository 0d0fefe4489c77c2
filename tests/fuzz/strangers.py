"""Requests of a user with few rights, and what that user must never see.

``seed`` puts objects with a canary where the user may not read; ``stranger_case`` asks for them in
every way the material knows. ``placeholders.leaked`` judges the answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any
from urllib.parse import quote

from tests.fuzz import mutation
from tests.fuzz.case import Case, request
from tests.fuzz.material import CRDS, GROUP, SAMPLE
from tests.fuzz.mutation import TOKENS
from tests.fuzz.placeholders import CANARY, OTHER, TOKEN

USER = "fuzz-stranger"
HIDDEN = "hidden"
_WORD = CANARY.decode()
_ACCEPT_ENCODING = re.compile(rb"Accept-Encoding: [^\r]*\r\n")
_IMPERSONATE = re.compile(rb"Impersonate-[^:\r]*: [^\r]*\r\n")
_MAPS, _PODS, _SECRETS = "configmaps", "pods", "secrets"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_RIGHTS = (
    {"apiGroups": ["", GROUP], "resources": ["configmaps", "samples", "samples/status"],
     "verbs": ["*"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "delete", "update", "patch"]},
    {"apiGroups": ["events.k8s.io", ""], "resources": ["events"], "verbs": ["create", "patch"]},
)  # fmt: skip
_PLACES = (
    "/api/v1/namespaces/default/secrets", "/api/v1/secrets", "/api/v1/namespaces/hidden/configmaps",
    "/api/v1/configmaps", "/api/v1/pods", "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/hidden/pods", "/api/v1/namespaces", "/api/v1/namespaces/hidden",
    f"/apis/{GROUP}/v1/samples", f"/apis/{GROUP}/v2/namespaces/hidden/samples",
    f"/apis/{GROUP}/v1/namespaces/hidden/samples", "/api/v1/namespaces/default/pods/canary",
    "/api/v1/namespaces/default/secrets/canary", "/api/v1/namespaces/hidden/configmaps/canary",
    f"/apis/{GROUP}/v1/namespaces/hidden/samples/canary", "/api/v1/namespaces/hidden/pods/canary",
    f"{CRDS}/canaries.{GROUP}", f"/apis/{GROUP}/v1/namespaces/default/samples",
    "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/configmaps/a",
    "/api/v1/events", "/api/v1/namespaces/default/events",
)  # fmt: skip
_AROUND = (
    "{}", "{}", "{}", "/instar/history{}", "/instar/history{}?at=1", "{}/status", "{}/scale",
    "/instar/history{}?before=99999999", "{}?watch=1&timeoutSeconds=1&sendInitialEvents=true&"
    "resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1", "{}?watch=1&timeoutSeconds=1",
    "{}?watch=1&timeoutSeconds=1&resourceVersion=1", "/./{}", "/{}", "{}/", "{}?limit=1",
    "{}?resourceVersion=0", "{}?fieldSelector=metadata.name%3Dcanary", "/console{}", "{}?pretty=1",
)  # fmt: skip
_OTHER_PLACES = (
    "/instar/access", "/instar/census", "/instar/usage", "/instar/migrations", "/metrics",
    f"/instar/stored/{GROUP}/samples/hidden/canary", f"/instar/convert/{GROUP}/samples",
    "/console/api/overview", "/console/api/webhooks", f"/console/api/crds/samples.{GROUP}/fields",
    f"/console/api/crds/samples.{GROUP}/objects/hidden/canary",
    f"/console/api/crds/samples.{GROUP}/migration", f"/console/api/crds/samples.{GROUP}/versions",
    "/openapi/v2", "/openapi/v3", "/readyz?verbose", "/apis", "/logs", "/debug/pprof",
)  # fmt: skip
_ACCEPTS = (
    "application/json", "application/yaml", "application/vnd.kubernetes.protobuf",
    "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadataList;"
    "g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
)  # fmt: skip


def seed(ask: Callable[..., Any]) -> None:
    """The user's rights, and the objects they do not reach. Asks as administrator."""
    meta = {"metadata": {"name": USER}}
    ask("POST", f"{_RBAC}/namespaces/default/roles", {**meta, "rules": list(_RIGHTS)})
    subject = {"kind": "User", "name": USER, "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "Role", "name": USER, "apiGroup": "rbac.authorization.k8s.io"}
    bound = {**meta, "roleRef": role, "subjects": [subject]}
    ask("POST", f"{_RBAC}/namespaces/default/rolebindings", bound)
    ask("POST", "/api/v1/namespaces", {"metadata": {"name": HIDDEN, "labels": {"x": _WORD}}})
    for namespace in ("default", HIDDEN):
        root = f"/api/v1/namespaces/{namespace}"
        metadata = {"name": "canary", "labels": {"canary": _WORD}, "annotations": {"a": _WORD}}
        ask("POST", f"{root}/{_SECRETS}", {"metadata": metadata, "stringData": {"a": _WORD}})
        pod = {"containers": [{"name": _WORD, "image": _WORD}]}
        ask("POST", f"{root}/{_PODS}", {"metadata": metadata, "spec": pod})
        # a name that no request of the user has
        ask("POST", f"{root}/{_SECRETS}", {"metadata": {"name": _WORD}})
    root = f"/api/v1/namespaces/{HIDDEN}"
    ask("POST", f"{root}/{_MAPS}", {"metadata": metadata, "data": {_WORD: _WORD}})
    ask("POST", f"{root}/{_MAPS}", {"metadata": {"name": _WORD}})
    samples = f"/apis/{GROUP}/v1/namespaces/{HIDDEN}/samples"
    sample = {**SAMPLE, "metadata": metadata, "spec": {**SAMPLE["spec"], "name": _WORD}}
    ask("POST", samples, sample)
    ask("PUT", f"{samples}/canary", {**sample, "spec": {"name": f"{_WORD}-again"}})


def stranger_case(chance: Random, other: Callable[[], Case]) -> Case:
    """A request of the user: any of the administrator's, or one for what is hidden."""
    if chance.random() < 0.35:
        case = other()
        data = _IMPERSONATE.sub(b"", _ACCEPT_ENCODING.sub(b"", case.data.replace(TOKEN, OTHER)))
        return case if case.answers != 1 or OTHER not in data else Case(data)
    if chance.random() < 0.15:
        target = chance.choice(_OTHER_PLACES)
    else:
        target = chance.choice(_AROUND).format(chance.choice(_PLACES))
    if chance.random() < 0.1:
        changed = mutation.text(chance, target, TOKENS["path"])
        target = quote(changed, safe="/%?#&=+;:@,!$'()*[]~", errors="surrogatepass")
    method = "GET" if chance.random() < 0.6 else chance.choice(("POST", "PUT", "PATCH", "DELETE"))
    headers = [("Host", "x"), ("Authorization", f"Bearer {OTHER.decode()}")]
    headers.append(("Accept", chance.choice(_ACCEPTS)))
    if chance.random() < 0.2:
        headers.append(("x-instar-console", "1"))
    body = None
    if method != "GET":
        media = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers.append(("Content-Type", media))
        body = b'{"metadata":{"name":"canary","labels":{"a":"b"}}}'
    return Case(request(method, target, headers, body))
