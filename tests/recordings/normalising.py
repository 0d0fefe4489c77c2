"""An answer without what is chance: uids, times, revisions, random names, addresses, ports.

Called with every answer, when one is recorded and when one is compared: two answers are the same
when their normal forms are. Pure, but for what a ``Normaliser`` remembers of its scenario: a uid or
a revision is named by the step that showed it first, so that "the same as before" stays visible.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.recordings.scenarios import GROUP_SUFFIX

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TEXTS = (
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|\+00:00)"), "<microtime>"),
    (re.compile(r"\b20[23]\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "<time>"),
    (re.compile(r"(kube-api-access-)[a-z0-9]{5}\b"), r"\1<random>"),
    (re.compile(r"(gen-)[bcdfghjklmnpqrstvwxz2456789]{5}\b"), r"\1<random>"),
    (re.compile(r"\b10\.0\.0\.\d+\b"), "<address>"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "127.0.0.1:<port>"),
    (re.compile(r'(resourceVersion(?:\\?")?:\s*\\?")\d+'), r"\1<rv>"),
    (re.compile(r"((?:resource version|ResourceVersion|current)[^0-9\"]{0,24}: )\d+"), r"\1<rv>"),
    (re.compile(r"(ResourceVersion in record \()\d+"), r"\1<rv>"),
    (re.compile(r"\bselfType\d+"), "selfType"),
    (re.compile(r"(Key: )/registry(?=/)"), r"\1"),
    (re.compile(r"(The provided continue parameter is too old)[^\"]*"), r"\1"),
)
_AGE = re.compile(r"(?:\d+[smhdy])+")
_NODE_PORT = range(30000, 32768)
_UNSTEADY_KINDS = ("CustomResourceDefinition", "APIService", "Lease")
"""Kinds that controllers of the server itself write: their revisions are chance."""
CONTROLLERS_MAP = "kube-root-ca.crt"
_KEPT_HEADERS = ("retry-after", "location", "allow", "content-type")


class Normaliser:
    """Of one scenario."""

    def __init__(self, *, managed: bool, chance: Mapping[str, str]) -> None:
        self._managed = managed
        self._chance = chance
        """Text → its name: what the one who plays has chosen, such as its certificate."""
        self._uids: dict[str, str] = {}
        self._revisions: dict[str, str] = {}
        self.step = ""
        """The step whose answer comes."""

    def answer(self, code: int, headers: Mapping[str, list[str]], body: str) -> dict[str, Any]:
        """What is kept of an answer."""
        row: dict[str, Any] = {"code": code}
        warnings = [self.text(each) for each in headers.get("warning", ())]
        if warnings:
            row["warnings"] = [re.sub(r'^299 - "|"$', "", each) for each in warnings]
        kept = {
            name: self.text(headers[name][0])
            for name in _KEPT_HEADERS
            if name in headers and headers[name][0] != "application/json"
        }
        if kept:
            row["headers"] = kept
        try:
            value = json.loads(body)
        except ValueError:
            row["text"] = self.text(body)
            return row
        return {**row, **_short(self.value(value), code)}

    def events(self, lines: list[str]) -> list[Any]:
        return [self.value(json.loads(line)) for line in lines]

    def value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return [self.value(each) for each in value if not _is_of_others(each)]
        return self.text(value) if isinstance(value, str) else value

    def text(self, text: str) -> str:
        for found, name in self._chance.items():
            text = text.replace(found, name)
        text = _UID.sub(lambda found: f"<uid {self._uids.setdefault(found[0], self.step)}>", text)
        for pattern, name in _TEXTS:
            text = pattern.sub(name, text)
        return text

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        out = {self.text(key): self.value(each) for key, each in value.items() if key != "metadata"}
        if "metadata" in value:
            metadata = value["metadata"]
            known = isinstance(metadata, dict)
            out["metadata"] = self._metadata(metadata, value) if known else self.value(metadata)
        if value.get("kind") == "Table" and isinstance(value.get("rows"), list):
            out["columnDefinitions"] = [
                {key: each for key, each in column.items() if key != "description"}
                for column in value.get("columnDefinitions") or ()
            ]
            for row in out["rows"]:
                row["cells"] = [_cell(each) for each in row.get("cells") or ()]
        if "serverAddress" in value:
            out["serverAddress"] = "<server>"
        if value.get("nodePort") in _NODE_PORT:
            out["nodePort"] = "<nodePort>"
        return out

    def _metadata(self, metadata: dict[str, Any], of: dict[str, Any]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, each in metadata.items():
            if key == "managedFields" and isinstance(each, list):
                if self._managed:
                    out[key] = sorted((self.value(one) for one in each), key=_manager_order)
            elif key == "resourceVersion" and isinstance(each, str) and each.isdigit():
                out[key] = self._revision(each, of)
            elif key == "continue" and each:
                out[key] = "<continue>"
            else:
                out[key] = self.value(each)
        return out

    def _revision(self, revision: str, of: dict[str, Any]) -> str:
        kind = str(of.get("kind", ""))
        chance = kind.endswith(("List", "Table")) or kind in _UNSTEADY_KINDS
        if revision == "0" or chance or "items" in of or "name" not in of.get("metadata", {}):
            return "0" if revision == "0" else "<rv>"
        return f"<rv {self._revisions.setdefault(revision, self.step)}>"


def _cell(value: Any) -> Any:
    return "<age>" if isinstance(value, str) and _AGE.fullmatch(value) else value


def _is_of_others(entry: Any) -> bool:
    """A group of a scenario, in a list of groups: it is there or not by what is played at the same
    time. Or the map that a controller puts into every namespace, where there is one."""
    if not isinstance(entry, dict):
        return False
    metadata = entry.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else entry.get("name")
    if name == CONTROLLERS_MAP:
        return True
    grouped = "versions" in entry and ("preferredVersion" in entry or metadata is not None)
    return grouped and isinstance(name, str) and name.endswith(f".{GROUP_SUFFIX}")


def _manager_order(entry: Any) -> tuple[str, ...]:
    """Writes of one second are ordered by their managers, others by time: chance."""
    names = ("operation", "manager", "subresource", "apiVersion")
    return tuple(str(entry.get(name, "")) for name in names)


def _short(body: Any, code: int) -> dict[str, Any]:
    """A failure without what every failure has."""
    usual = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    if isinstance(body, dict) and {**usual, "code": code}.items() <= body.items():
        rest = {key: each for key, each in body.items() if key not in usual and key != "code"}
        return {"failure": _with_causes_once(rest)}
    return {"body": body}


def _with_causes_once(failure: dict[str, Any]) -> dict[str, Any]:
    """The message of an invalid object repeats its causes: written once, as ``<causes>``."""
    details = failure.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    if not causes:
        return failure
    parts = list(dict.fromkeys(f"{one.get('field')}: {one.get('message')}" for one in causes))
    text = parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"
    message = str(failure.get("message"))
    if not message.endswith(f": {text}"):
        return failure
    return {**failure, "message": f"{message.removesuffix(text)}<causes>"}


def without_order(row: dict[str, Any]) -> dict[str, Any]:
    """For questions whose causes upstream finds in any order."""
    failure = row.get("failure")
    if not isinstance(failure, dict):
        return row
    details = dict(failure.get("details") or {})
    causes = sorted(details.get("causes") or (), key=lambda one: json.dumps(one, sort_keys=True))
    parts = sorted(re.split(r", |[][\n]", str(failure.get("message"))))
    return {
        **row,
        "failure": {
            **failure, "message": " ".join(parts), "details": {**details, "causes": causes},
        },
    }  # fmt: skip
