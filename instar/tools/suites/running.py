"""Runs the test cases of a CRD test suite (``instar test``) on an embedded server.

``session.py`` calls it for each suite. Each case creates or updates its own object and compares the
server's response with the expected one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import field
from typing import Any

import orjson

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object, copy_json
from instar.kube.api.names import parse_group_version
from instar.server.lifecycle.embedded import Embedded, EmbeddedReply, ServedKind
from instar.tools.sdk.checking.differences import differences
from instar.tools.suites.model import Act, Suite, SuiteCase

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NAMESPACE = "default"
_OF_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
"""Metadata that a suite may expect; the rest is the server's."""
_SHOWN_VALUE = re.compile(r'Invalid value: (?:"(?:[^"\\]|\\.)*"|null|[0-9.e+-]+|true|false): ')


@dataclass(slots=True)
class Result:
    suite: Suite
    case: SuiteCase
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0
    sent: list[Object] = field(default_factory=list)
    """Every object the case sent, for coverage."""

    @property
    def passed(self) -> bool:
        return not self.failures


class _Stopped(Exception):
    """The case cannot continue; the message is its failure."""


class SuiteRunner:
    """Runs cases of one CRD, which is installed once."""

    def __init__(self, api: Embedded, crd: Object) -> None:
        self._api = api
        self._name = str(crd["metadata"]["name"])
        self._spec = crd["spec"]

    @classmethod
    async def install(cls, api: Embedded, crd: Object, *, converts: bool) -> SuiteRunner:
        """Install the CRD. Raises ``ValueError`` with the server's message if it is rejected."""
        given = crd.get("metadata") or {}
        bare: Object = {
            "apiVersion": crd.get("apiVersion"),
            "kind": crd.get("kind"),
            "metadata": {name: given[name] for name in ("name", "annotations") if name in given},
            "spec": copy_json(crd.get("spec")),
        }
        if not converts and isinstance(bare["spec"], dict):
            bare["spec"].pop("conversion", None)
        version = str(crd.get("apiVersion", "")).rpartition("/")[2]
        reply = await api.ask("POST", _CRDS.replace("/v1/", f"/{version}/"), bare)
        if reply.refused:
            raise ValueError(_message(reply))
        return cls(api, reply.document)

    async def run(self, suite: Suite, case: SuiteCase) -> Result:
        result, began = Result(suite, case), time.perf_counter()
        try:
            await _ACTS[case.act](self, case, result)
        except _Stopped as stop:
            result.failures.append(str(stop))
        await self._clear()
        result.seconds = time.perf_counter() - began
        return result

    async def answer(self, obj: Object, name: str) -> tuple[str, Object]:
        """Return the server's answer to a create: the error without the name, or the object without
        metadata."""
        named = {**obj, "metadata": {**(obj.get("metadata") or {}), "name": name}}
        reply, status = await self._create(
            named, Result(Suite("", ""), SuiteCase(Act.CREATE, "", 0))
        )
        last = status or reply
        if last.refused:
            return _message(last).partition(f'"{name}" is invalid: ')[2] or _message(last), {}
        shown = {name: value for name, value in last.document.items() if name != "metadata"}
        return "", {n: shown[n] for n in ("apiVersion", "kind", *shown) if n in shown}

    # Cases --------------------------------------------------------------------------------------

    async def on_create(self, case: SuiteCase, result: Result) -> None:
        assert case.initial is not None
        reply, status = await self._create(case.initial, result)
        self._compare(case, result, status or reply)

    async def on_update(self, case: SuiteCase, result: Result) -> None:
        assert case.initial is not None
        assert case.second is not None
        live = await self._create_initial(case, case.initial, result)
        new = _as_update(case.second, live)
        result.sent.append(new)
        path = self._path(new, name=new["metadata"]["name"])
        reply = await self._api.ask("PUT", path, new)
        if reply.refused or "status" not in new or not self._has_status(new):
            if case.expected_status_error:
                result.failures.append("the status was never written: the update itself failed")
            self._compare(case, result, reply)
            return
        new["metadata"]["resourceVersion"] = reply.document["metadata"]["resourceVersion"]
        status = await self._api.ask("PUT", f"{path}/status", new)
        if case.expected_status_error:
            _expect_refusal(result, status, case.expected_status_error, "of the status")
            return
        self._compare(case, result, status)

    async def on_apply(self, case: SuiteCase, result: Result) -> None:
        assert case.second is not None
        applied: Object = copy_json(case.second)
        if case.initial is not None:
            live = await self._create_initial(case, case.initial, result)
            applied.setdefault("metadata", {})["name"] = live["metadata"]["name"]
        else:
            applied.setdefault("metadata", {}).setdefault("name", "test")
        result.sent.append(applied)
        query = {"fieldManager": case.manager, "force": "true" if case.force else "false"}
        path = self._path(applied, name=applied["metadata"]["name"])
        reply = await self._api.ask(
            "PATCH", path, applied, query=query, content_type="application/apply-patch+yaml"
        )
        self._compare(case, result, reply)

    async def on_convert(self, case: SuiteCase, result: Result) -> None:
        assert case.initial is not None
        live = await self._create_initial(case, case.initial, result)
        group = parse_group_version(str(live["apiVersion"])).group
        other = {**live, "apiVersion": f"{group}/{case.version}"}
        kind = self._kind(other)
        if case.version not in kind.versions:
            raise _Stopped(f"{case.version} is not served; {kind.name} has {kind.versions}")
        path = self._path(other, name=live["metadata"]["name"])
        self._compare(case, result, await self._api.ask("GET", path))

    # Steps --------------------------------------------------------------------------------------

    async def _create_initial(self, case: SuiteCase, initial: Object, result: Result) -> Object:
        """Create the initial object, under the patched CRD if given."""
        if case.crd_patches:
            await self._change_crd(orjson.dumps(list(case.crd_patches)))
        try:
            reply, status = await self._create(initial, result)
        finally:
            if case.crd_patches:
                await self._restore_crd()
        for answer in (reply, status):
            if answer is not None and answer.refused:
                raise _Stopped(f"the initial object was refused: {_message(answer)}")
        live: Object = (status or reply).document
        if case.crd_patches:
            path = self._path(live, name=live["metadata"]["name"])
            live = (await self._api.ask("GET", path)).document
        return live

    async def _create(
        self, obj: Object, result: Result
    ) -> tuple[EmbeddedReply, EmbeddedReply | None]:
        """Create the object, then its status if that is a subresource."""
        new: Object = copy_json(obj)
        metadata = new.setdefault("metadata", {})
        if isinstance(metadata, dict) and not metadata.get("name"):
            metadata.setdefault("generateName", "test-")
        result.sent.append(new)
        reply = await self._api.ask("POST", self._path(new), new)
        if reply.refused or "status" not in new or not self._has_status(new):
            return reply, None
        made = {**new, "metadata": reply.document["metadata"]}
        path = self._path(made, name=made["metadata"]["name"])
        return reply, await self._api.ask("PUT", f"{path}/status", made)

    async def _clear(self) -> None:
        """Delete all objects, so that the next case starts empty."""
        kind = self._api.kind(self._spec["group"], self._spec["names"]["kind"])
        if kind is not None:
            await self._api.clear(kind)

    async def _change_crd(self, patch: bytes) -> None:
        path = f"{_CRDS}/{self._name}"
        reply = await self._api.ask(
            "PATCH", path, patch, content_type="application/json-patch+json"
        )
        if reply.refused:
            raise _Stopped(f"initialCRDPatches: {_message(reply)}")

    async def _restore_crd(self) -> None:
        path = f"{_CRDS}/{self._name}"
        current = (await self._api.ask("GET", path)).document
        reply = await self._api.ask("PUT", path, {**current, "spec": self._spec})
        if reply.refused:
            raise _Stopped(f"the CRD could not be put back: {_message(reply)}")

    def _kind(self, obj: Object) -> ServedKind:
        try:
            group = parse_group_version(str(obj.get("apiVersion", ""))).group
        except ValueError as error:
            raise _Stopped(str(error)) from None
        kind = self._api.kind(group, str(obj.get("kind", "")))
        if kind is None:
            raise _Stopped(f"{obj.get('apiVersion')} {obj.get('kind')} is not of {self._name}")
        return kind

    def _path(self, obj: Object, name: str = "") -> str:
        kind = self._kind(obj)
        version = parse_group_version(str(obj["apiVersion"])).version
        metadata = obj.get("metadata") or {}
        place = str(metadata.get("namespace") or _NAMESPACE) if kind.namespaced else ""
        return kind.path(version, place, name)

    def _has_status(self, obj: Object) -> bool:
        version = parse_group_version(str(obj["apiVersion"])).version
        return self._kind(obj).has_status(version)

    def _compare(self, case: SuiteCase, result: Result, reply: EmbeddedReply) -> None:
        if case.expected_error:
            _expect_refusal(result, reply, case.expected_error)
        elif reply.refused:
            result.failures.append(f"refused: {_message(reply)}")
        elif case.expected is not None:
            result.failures += differences_from_expected(case.expected, reply.document)


_ACTS = {
    Act.CREATE: SuiteRunner.on_create,
    Act.UPDATE: SuiteRunner.on_update,
    Act.APPLY: SuiteRunner.on_apply,
    Act.CONVERT: SuiteRunner.on_convert,
}


def _expect_refusal(result: Result, reply: EmbeddedReply, expected: str, what: str = "") -> None:
    if not reply.refused:
        result.failures.append(f"accepted; a refusal {what or 'was expected'} with: {expected}")
    elif not same_message(expected, _message(reply)):
        result.failures.append(f"refused in other words: {_message(reply)}")
        result.failures.append(f"expected were: {expected}")


def same_message(expected: str, message: str) -> bool:
    """Return whether an error is the expected one. Servers before 1.35 showed a value's type where
    newer ones show the value, so values are ignored."""
    return expected in message or _without_values(expected) in _without_values(message)


def _without_values(text: str) -> str:
    return _SHOWN_VALUE.sub("Invalid value: ", text)


def _as_update(updated: Object, live: Object) -> Object:
    """Return the update with the name, uid and resourceVersion of the live object."""
    new: Object = copy_json(updated)
    given = new.get("metadata") or {}
    kept = ("name", "namespace", "uid", "resourceVersion")
    new["metadata"] = {**given, **{n: live["metadata"][n] for n in kept if n in live["metadata"]}}
    return new


def differences_from_expected(expected: Object, actual: Mapping[str, Any]) -> list[str]:
    """Return the differences to the expected object; only the expected metadata is compared."""
    wanted, found = _comparable(expected, expected), _comparable(actual, expected)
    return [str(each) for each in differences(wanted, found)]


def _comparable(obj: Mapping[str, Any], expected: Object) -> Object:
    asked = expected.get("metadata") or {}
    own = obj.get("metadata") or {}
    metadata = {name: own[name] for name in _OF_METADATA if name in asked and name in own}
    rest = {name: value for name, value in obj.items() if name != "metadata"}
    return {**rest, "metadata": metadata} if metadata else rest


def _message(reply: EmbeddedReply) -> str:
    document = reply.document
    return str(document.get("message", document)) if isinstance(document, dict) else str(document)
