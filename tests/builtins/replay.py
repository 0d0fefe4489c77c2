"""Recorded requests sent again: what kube-apiserver answered, compared with what we answer.

``python -m tests.builtins.replay defaults [PREFIX]`` prints what differs, for whoever works on it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.server import Answer, LiveServer, live_server

RECORDINGS = Path(__file__).parents[2].parent / "shared" / "data" / "builtins"
NAMESPACES = (
    "rec",
    "lr",
    "rq",
    "inv",
    "rqi",
    "pat",
    "tab",
)
_PLACEHOLDERS = {
    "<uid>": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "<rv>": r"[0-9]+",
    "<time>": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "<microtime>": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z",
    "<clusterIP>": r"[0-9.]+",
    "<nodePort>": r"[0-9]+",
    "<5 random>": r"[bcdfghjklmnpqrstvwxz2456789]{5}",
    "<jwt>": r"[\w-]+\.[\w-]+\.[\w-]+",
}
_SPLIT = re.compile("(" + "|".join(map(re.escape, _PLACEHOLDERS)) + ")")
_FILLED = {
    "<uid>": "11111111-2222-3333-4444-555555555555",
    "<time>": "2024-01-01T00:00:00Z",
    "<microtime>": "2024-01-01T00:00:00.000000Z",
}


_PODS = "/api/v1/namespaces/inv/pods"
_NODE = {"metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "z1"}}}
_RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
_DEPLOYMENT = {
    "metadata": {"name": "pu"},
    "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "a", "image": "x:1"}]},
        },
    },
}
UNRECORDED: Mapping[str, Sequence[tuple[str, str, Any]]] = {
    "binding.noPod": [
        ("POST", "/api/v1/nodes", _NODE),
        ("POST", f"{_PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n1"}}),
    ],
    "pod.delete.04.create.b": [("POST", "/api/v1/nodes", _NODE)],
    "pod.eviction.05.pdb": [
        ("PATCH", "/api/v1/namespaces/pat/pods/e2/status", {"status": _RUNNING})
    ],
    "put.04.configmap.noResourceVersion": [
        ("POST", "/api/v1/namespaces/pat/configmaps", {"metadata": {"name": "pu"}})
    ],
    "put.18.pdb.noResourceVersion": [
        (
            "POST",
            "/apis/policy/v1/namespaces/pat/poddisruptionbudgets",
            {"metadata": {"name": "pu"}},
        )
    ],
    "put.20.csidriver.noResourceVersion": [
        ("POST", "/apis/storage.k8s.io/v1/csidrivers", {"metadata": {"name": "pu"}, "spec": {}})
    ],
    "put.22.webhook.noResourceVersion": [
        (
            "POST",
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            {"metadata": {"name": "pu"}},
        )
    ],
    "put.24.deployment.noResourceVersion": [
        ("POST", "/apis/apps/v1/namespaces/pat/deployments", _DEPLOYMENT)
    ],
}
"""What was done between two recorded requests, by the id of the later one."""


def recorded(name: str) -> list[dict[str, Any]]:
    path = RECORDINGS / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def prepare(server: LiveServer) -> None:
    """What was there before the recordings began."""
    for name in NAMESPACES:
        server.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})


_JSON, _MERGE = "application/json", "application/merge-patch+json"
_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
_CONTAINER = {"name": "a", "image": "x:1"}
_BEFORE: dict[str, tuple[str, str, Any]] = {
    "pc.create.secondGlobal": (
        "POST",
        _CLASSES,
        {"metadata": {"name": "pcglob"}, "value": 1, "globalDefault": True},
    ),
    "rtc.create.noHandler": ("DELETE", f"{_CLASSES}/pcglob", None),
    "rq.exceeded": (
        "POST",
        "/api/v1/namespaces/rqi/pods",
        {"metadata": {"name": "first"}, "spec": {"containers": [_CONTAINER]}},
    ),
    "node.update.providerID": (
        "PATCH",
        "/api/v1/nodes/nodex",
        {"spec": {"providerID": "a", "podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}},
    ),
}
"""What must have been done off the record before a line, for its answer to be right."""


def send(server: LiveServer, row: dict[str, Any]) -> Answer:
    if row["id"] in _BEFORE:
        method, path, wanted = _BEFORE[row["id"]]
        server.request(method, path, wanted, content_type=_MERGE if method == "PATCH" else _JSON)
    body = row.get("body")
    headers = {"Accept": row["accept"]} if "accept" in row else {}
    media = row.get("contentType", "application/json")
    return server.request(
        row.get("method", "GET"), row["path"], body, content_type=media, headers=headers
    )


def differences(row: dict[str, Any], answer: Answer) -> list[str]:
    """In words; none when the answer is the recorded one."""
    found = []
    if answer.status != row["status"]:
        found.append(f"status {answer.status} for {row['status']}: {answer.text[:300]}")
        return found
    try:
        body = answer.json
    except ValueError:
        body = answer.text
    expected = row.get("answer")
    if isinstance(expected, dict) and "(summary)" in expected:
        wanted = row["body"]["metadata"]
        for part in ("labels", "annotations", "finalizers"):
            taken = _holds(_at(body, f"metadata.{part}"), wanted[part])
            if taken is not expected[part]:
                found.append(f"{part} changed: {taken}")
    elif isinstance(expected, dict) and "names" in expected:
        names = sorted(item["metadata"]["name"] for item in body["items"])
        found += _compare(sorted(expected["names"]), names, "names", partial=False)
    elif isinstance(expected, dict) and "(only)" in expected:
        for path in expected["(only)"]:
            found += _compare(_at(expected, path), _at(body, path), path, partial=False)
    elif isinstance(expected, dict) and isinstance(body, dict):
        if "reason" in expected and "kind" not in expected:
            body = {key: _part(body, key) for key in expected}
        partial = "kind" not in expected or set(expected) <= {"kind", "metadata"}
        found += _compare(expected, body, "", partial=partial)
    texts = [re.sub(r'^299 - "|"$', "", text) for text in answer.warnings]
    wanted = row.get("warnings", [])
    if [text.replace('\\"', '"') for text in texts] != wanted and answer.status < 300:
        found.append(f"warnings {texts} for {wanted}")
    return found


def _at(value: Any, path: str) -> Any:
    """A null that is not there is recorded as null."""
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _holds(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return all((value or {}).get(key) == item for key, item in wanted.items())
    return all(item in (value or ()) for item in wanted)


def _part(body: dict[str, Any], key: str) -> Any:
    """``causes`` are recorded beside the details they belong to."""
    if key == "causes":
        return (body.get("details") or {}).get("causes")
    if key == "details":
        details = body.get("details")
        return None if details is None else {k: v for k, v in details.items() if k != "causes"}
    return body.get(key)


def _compare(expected: Any, actual: Any, path: str, *, partial: bool) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in expected:
            if key not in actual:
                yield f"{path}.{key}: missing, expected {_short(expected[key])}"
            else:
                below = partial and key in ("metadata", "spec", "status")
                yield from _compare(expected[key], actual[key], f"{path}.{key}", partial=below)
        for key in actual if not partial else ():
            if key not in expected and key != "managedFields":
                yield f"{path}.{key}: not expected: {_short(actual[key])}"
    elif isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            yield f"{path}: {_short(actual)} for {_short(expected)}"
            return
        for position, (left, right) in enumerate(zip(expected, actual, strict=True)):
            yield from _compare(left, right, f"{path}[{position}]", partial=False)
    elif not _same(expected, actual):
        yield f"{path}: {_short(actual)} for {_short(expected)}"


def _same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, str) and "<" in expected:
        pattern = "".join(
            _PLACEHOLDERS.get(part) or re.escape(part) for part in _SPLIT.split(expected)
        )
        return re.fullmatch(pattern, str(actual)) is not None
    return type(expected) is type(actual) and bool(expected == actual)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 400 else f"{text[:400]}…"


Replayed = dict[str, list[str]]
"""What differs, by file and id (``invalid pod.setup``)."""


def replay(names: Sequence[str]) -> Replayed:
    """Whole files one after the other on one server, as they were recorded."""
    found: Replayed = {}
    with live_server(storage="memory:", collect_garbage=False) as server:
        prepare(server)
        for name in names:
            for row in recorded(name):
                for method, path, body in UNRECORDED.get(row["id"], ()):
                    media = "application/merge-patch+json" if method == "PATCH" else ""
                    media = media or "application/json"
                    server.request(method, path, body, content_type=media)
                found[f"{name} {row['id']}"] = differences(row, send(server, row))
    return found


def _tell_all(prefix: str) -> None:
    found = replay(("defaults", "invalid", "patch"))
    for line, texts in found.items():
        if texts and line.startswith(prefix):
            print(line, *texts[:5], sep="\n    ")
    print(sum(not texts for texts in found.values()), "of", len(found))


def main() -> None:
    name, prefix = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    if name == "all":
        _tell_all(prefix)
        return
    right = total = 0
    with live_server(storage="memory:", furniture=True) as server:
        prepare(server)
        for row in recorded(name):
            answer = send(server, row)
            if not row["id"].startswith(prefix):
                continue
            total += 1
            found = differences(row, answer)
            right += not found
            if found:
                print(row["id"], row.get("method", "GET"), row["path"])
                for text in found[:6]:
                    print("   ", text)
    print(f"{name} {prefix}: {right} of {total}")


if __name__ == "__main__":
    main()
