"""Graphs of owners: cycles, self-references, fans, owners that are not there, finalizers, and
deletions of every sort among them."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.fuzz.case import Case, request
from tests.fuzz.material import GROUP
from tests.fuzz.mutation import number
from tests.fuzz.placeholders import LEARN, TOKEN, uid_of

_NODES = 24
_MAPS = "/api/v1/namespaces/default/configmaps"
_SAMPLES = f"/apis/{GROUP}/v1/namespaces/default/samples"
_OWN = f"/apis/{GROUP}/v1/namespaces/default/own0s"
_KINDS = (
    (_MAPS, "v1", "ConfigMap"), (_SAMPLES, f"{GROUP}/v1", "Sample"), (_OWN, f"{GROUP}/v1", "Own0"),
)  # fmt: skip
_FINALIZERS = ("foregroundDeletion", "orphan", "fuzz.example.com/held", "kubernetes")
_POLICIES = ("Foreground", "Background", "Orphan")
_MERGE = "application/merge-patch+json"


def owner_case(chance: Random) -> Case:
    at = chance.randrange(_NODES)
    path, version, kind = _kind_of(at)
    step = chance.randrange(10)
    if step < 4:
        metadata: Any = {"name": f"g{at}", "ownerReferences": _references(chance, at)}
        if chance.random() < 0.3:
            metadata["finalizers"] = chance.sample(_FINALIZERS, chance.randint(1, 2))
        return _sent("POST", path, {"apiVersion": version, "kind": kind, "metadata": metadata}, at)
    if step < 7:
        patch = {"metadata": {"ownerReferences": _references(chance, at)}}
        return _sent("PATCH", f"{path}/g{at}", patch)
    if step == 7:
        return _sent("PATCH", f"{path}/g{at}", {"metadata": {"finalizers": None}})
    options = {"kind": "DeleteOptions", "apiVersion": "v1"}
    options["propagationPolicy"] = chance.choice(_POLICIES)
    return _sent("DELETE", path if step == 9 and at == 0 else f"{path}/g{at}", options)


def _kind_of(at: int) -> tuple[str, str, str]:
    return _KINDS[at % 8] if at % 8 < len(_KINDS) else _KINDS[0]


def _references(chance: Random, at: int) -> list[Any]:
    found = []
    for _ in range(number(chance, chance.choice((4, 4, 4, 400)))):
        to = at if chance.random() < 0.15 else chance.randrange(_NODES)
        _, version, kind = _kind_of(to if chance.random() < 0.9 else chance.randrange(_NODES))
        uid = uid_of(f"g{to}") if chance.random() < 0.85 else f"no-such-{chance.randrange(99999)}"
        reference: Any = {"apiVersion": version, "kind": kind, "name": f"g{to}", "uid": uid}
        if chance.random() < 0.4:
            reference["blockOwnerDeletion"] = chance.random() < 0.7
        if chance.random() < 0.05:
            reference["controller"] = True
        if chance.random() < 0.05:
            reference |= {"apiVersion": "nowhere.example.com/v1", "kind": "Nothing"}
        found.append(reference)
    return found


def _sent(method: str, target: str, value: Any, learn: int | None = None) -> Case:
    media = _MERGE if method == "PATCH" else "application/json"
    headers = [("Host", "x"), ("Authorization", f"Bearer {TOKEN.decode()}")]
    headers.append(("Content-Type", media))
    if learn is not None:
        headers.append((LEARN, f"g{learn}"))
    return Case(request(method, target, headers, json.dumps(value).encode()))
