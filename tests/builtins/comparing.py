"""A recorded answer and ours: what differs, in words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.support.server import Answer

_PLACEHOLDERS = {
    "<uid>": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "<rv>": r"[0-9]+",
    "<time>": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "<microtime>": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z",
    "<clusterIP>": r"[0-9.]+",
    "<nodePort>": r"[0-9]+",
    "<5 random>": r"[bcdfghjklmnpqrstvwxz2456789]{5}",
    "<jwt>": r"[\w-]+\.[\w-]+\.[\w-]+",
    "<unchanged>": r"[0-9.]+",
}
_SPLIT = re.compile("(" + "|".join(map(re.escape, _PLACEHOLDERS)) + ")")
_VARYING = (
    (re.compile(r'(creationTimestamp\\":\\")[^"\\]+'), r"\1<time>"),
    (re.compile(r'(resourceVersion\\":\\")\d+'), r"\1<rv>"),
    (re.compile(r"(Too large resource version: \d+, current: )\d+"), r"\1<rv>"),
)
"""What no two servers have alike, where it is quoted in a text and was recorded as it was."""
_ADDRESS = re.compile(r"\b(?:10\.0\.0|192\.168\.0)\.\d+\b")
_BY_CHANCE = ("svc.create.badName", "svc.update.clusterIPEmptied", "svc.update.ipFamilies")
"""Lines that quote an address which a server chose."""
_UNORDERED = ("pod.create.negQuantity", "cm.create.badKey")
"""Lines whose causes upstream finds by walking a Go map: in any order."""


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
    if row["id"] in _BY_CHANCE:
        expected, body = _without_addresses(expected), _without_addresses(body)
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
        if row["id"] in _UNORDERED:
            expected, body = _sorted_causes(expected), _sorted_causes(body)
        partial = "kind" not in expected or set(expected) <= {"kind", "metadata"}
        found += _compare(expected, body, "", partial=partial)
    texts = [re.sub(r'^299 - "|"$', "", text) for text in answer.warnings]
    wanted = row.get("warnings", [])
    if [text.replace('\\"', '"') for text in texts] != wanted and answer.status < 300:
        found.append(f"warnings {texts} for {wanted}")
    return found


def _without_addresses(value: Any) -> Any:
    return json.loads(_ADDRESS.sub("0.0.0.0", json.dumps(value)))


def _sorted_causes(status: dict[str, Any]) -> dict[str, Any]:
    causes = sorted(status["causes"], key=json.dumps)
    parts = sorted(re.split(r", |[][]", status["message"]))
    return {**status, "causes": causes, "message": " ".join(parts)}


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
                if partial and expected[key] is None:
                    continue
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
    if isinstance(expected, str):
        for varying, name in _VARYING:
            expected = varying.sub(name, expected)
    if isinstance(expected, str) and "<" in expected:
        parts = (_PLACEHOLDERS.get(part) or re.escape(part) for part in _SPLIT.split(expected))
        return re.fullmatch("".join(parts), str(actual)) is not None
    return type(expected) is type(actual) and bool(expected == actual)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 400 else f"{text[:400]}…"
