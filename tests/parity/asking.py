"""One object, three who judge it: a server over HTTP, the reviewer's judge, ``instar check``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import deepcopy
from itertools import count
from typing import Any, NamedTuple

from instar.base.json_values import Object
from instar.kube.schema.cel_rules.evaluate import compile_rules
from instar.tools.reviewer.reviewed_crd import read_reviewed_crd
from instar.tools.reviewer.server_model import CrdSimulator
from instar.tools.sdk.checking.case import VersionSchema, schema_of
from instar.tools.sdk.checking.definition import parse_crd
from tests.support.server import Answer, LiveServer

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_UNKNOWN = re.compile(r'299 - "unknown field \\"(.*)\\""')
_FRAME = ("apiVersion", "kind", "metadata")


class Told(NamedTuple):
    """What somebody says to an object."""

    refusals: list[str]
    unknown: list[str] | None = None
    """Paths that were dropped; None where nobody was told."""
    kept: Object | None = None
    """Its content afterwards, if it was accepted."""


class Court:
    """One version of one CRD, known to all three."""

    def __init__(self, server: LiveServer, crd: Object, version: str = "v1") -> None:
        self.server, self.version = server, version
        server.create_crd(crd)
        self._take(crd)
        self._numbers = count()

    def _take(self, crd: Object) -> None:
        self.crd = crd
        self.judge = CrdSimulator(
            read_reviewed_crd(crd), version=self.version, compile_rules=compile_rules
        )
        parsed = parse_crd(crd)
        wanted = parsed.version(self.version)
        assert wanted is not None
        self.check: VersionSchema = schema_of(parsed, wanted)
        plural, group = parsed.names.plural, parsed.group
        inside = "namespaces/default/" if parsed.namespaced else ""
        self.path = f"/apis/{group}/{self.version}/{inside}{plural}"

    def change(self, crd: Object) -> None:
        """The CRD becomes another one, for all three."""
        path = f"{CRDS}/{crd['metadata']['name']}"
        known = self.server.request("GET", path).json
        changed = {**crd, "metadata": known["metadata"]}
        answer = self.server.request("PUT", path, changed)
        assert answer.status == 200, answer.text
        self._take(crd)

    def obj(self, **members: Any) -> Object:
        """With a name nobody has used yet."""
        head = {"apiVersion": self.check.api_version, "kind": self.check.pipeline.kind}
        return {**head, "metadata": {"name": self.fresh_name()}, **members}

    def fresh_name(self) -> str:
        return f"n{next(self._numbers)}"

    def created_by_the_server(self, obj: Object) -> Told:
        """Created, and then the status sent where that has an endpoint of its own."""
        answer = self.server.request("POST", self.path, obj)
        if answer.status != 201:
            return Told(refusals(answer))
        unknown = unknown_fields(answer)
        if self.check.pipeline.has_status and obj.get("status") is not None:
            answer = self._put(answer.json, {**answer.json, "status": obj["status"]}, "/status")
            if answer.status != 200:
                return Told(refusals(answer))
        return Told([], unknown, content(answer.json))

    def updated_by_the_server(self, obj: Object) -> Told:
        """The stored object of that name made this one; its status, too, if that differs."""
        name = obj["metadata"]["name"]
        old = self.server.request("GET", f"{self.path}/{name}").json
        answer = self._put(old, obj)
        if answer.status != 200:
            return Told(refusals(answer))
        unknown = unknown_fields(answer)
        if self.check.pipeline.has_status and obj.get("status") != answer.json.get("status"):
            answer = self._put(answer.json, obj, "/status")
            if answer.status != 200:
                return Told(refusals(answer))
        return Told([], unknown, content(answer.json))

    def read(self, name: str) -> Object:
        found: Object = self.server.request("GET", f"{self.path}/{name}").json
        return found

    def _put(self, old: Object, new: Object, sub: str = "") -> Answer:
        revision = {"resourceVersion": old["metadata"]["resourceVersion"]}
        sent = {**new, "metadata": {**new["metadata"], **revision}}
        return self.server.request("PUT", f"{self.path}/{old['metadata']['name']}{sub}", sent)


def refusals(answer: Answer) -> list[str]:
    """Each reason of a refusal once, as the others say it."""
    status = answer.json
    if answer.status == 400:
        handled: str = status["message"]
        return [handled.partition("cannot be handled as a ")[2].partition(": ")[2] or handled]
    assert answer.status == 422, answer.text
    causes = status["details"]["causes"]
    return once(f"{cause['field']}: {cause['message']}" for cause in causes)


def unknown_fields(answer: Answer) -> list[str]:
    found = (_UNKNOWN.fullmatch(text) for text in answer.warnings)
    return [match[1] for match in found if match is not None]


def once(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def content(obj: Object) -> Object:
    return {name: value for name, value in obj.items() if name not in _FRAME}


def created_by_the_judge(court: Court, obj: Object) -> Told:
    verdict = court.judge.create(obj)
    if not verdict.accepted or verdict.result is None:
        return Told(list(verdict.texts))
    return Told([], list(verdict.pruned), content(verdict.result))


def updated_by_the_judge(court: Court, before: Object, after: Object) -> Told:
    verdict = court.judge.update(before, after)
    if not verdict.accepted or verdict.result is None:
        return Told(list(verdict.texts))
    return Told([], list(verdict.pruned), content(verdict.result))


def created_by_check(court: Court, obj: Object) -> Told:
    admitted = court.check.admit(obj)
    said = court.check.problems(obj)
    return Told(said, None, None if admitted is None else content(admitted))


def assert_one_answer(court: Court, obj: Object) -> Told:
    """All three say the same to the creation of ``obj``; what that is."""
    before = deepcopy(obj)
    server, judge = court.created_by_the_server(obj), created_by_the_judge(court, obj)
    check = created_by_check(court, obj)

    assert judge == server
    assert check == Told(server.refusals, None, server.kept)
    assert obj == before
    return server
