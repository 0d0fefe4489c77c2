"""Laws for admission handlers written in Python, for ``instar check --admission``.

Called by ``cli/commands/check.py``. A mutator may not change identity or immutable fields, must be
idempotent and keep objects valid; validators must give one verdict for an object at every version.
Handlers run as a server calls webhooks: in order, each at the version its rules ask for, with
defaults applied after each mutator.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object, copy_json
from instar.kube.admission.match_rules import MatchedRequest, RequestEndpoint
from instar.kube.admission.matching import Criteria, read_criteria
from instar.kube.api.crd import Crd
from instar.kube.api.names import GroupVersionKind
from instar.kube.schema.offline_requests import update
from instar.tools.sdk.admission import Admission, AdmissionHandler, HandlerResult
from instar.tools.sdk.checking.case import (
    CheckCase,
    ContractBroken,
    ConversionRejected,
    Responder,
    Uncheckable,
    VersionSchema,
    schema_of,
)
from instar.tools.sdk.checking.differences import object_differences
from instar.tools.sdk.checking.directed_inputs import DirectedInputs
from instar.tools.sdk.checking.laws import Inapplicable, Law, LawBroken, VersionPair
from instar.tools.sdk.checking.report import CheckReport
from instar.tools.sdk.checking.search import Progress, check_laws, most_directed_objects

_IDENTITY = ("name", "generateName", "namespace", "uid", "resourceVersion", "creationTimestamp")


class RequestRelabelling:
    """Conversion strategy None: changes ``apiVersion`` and nothing else."""

    def convert(self, objects: Sequence[Object], api_version: str) -> Sequence[Any]:
        return [{**obj, "apiVersion": api_version} for obj in objects]


@dataclass(frozen=True, slots=True)
class _Ruled:
    handler: AdmissionHandler
    criteria: Criteria


class HandlerRunner:
    """Runs the handlers of one CRD as a server calls webhooks."""

    def __init__(self, admission: Admission, crd: Crd) -> None:
        listed = [_Ruled(each, read_criteria(each.document)) for each in admission.handlers]
        self._crd = crd
        self._endpoints = tuple(self._endpoint(version.name) for version in crd.versions)
        everything = [self._matched_request(each.version, "CREATE") for each in self._endpoints]
        self._mutators = [each for each in listed if each.handler.mutating]
        self._validators = [each for each in listed if not each.handler.mutating]
        meant = (each.criteria.endpoint(asked) for each in listed for asked in everything)
        if not any(found is not None for found in meant):
            raise Uncheckable(f"no handler is for {crd.name}")

    def mutate(
        self, case: CheckCase, version: VersionSchema, obj: Object, operation: str
    ) -> Object:
        """Return the object after all mutators. Raises ``Inapplicable`` if a mutator refuses it."""
        current, at = copy_json(obj), version
        for each in self._mutators:
            endpoint = each.criteria.endpoint(self._matched_request(version.name, operation))
            if endpoint is None:
                continue
            wanted = case.versions.get(endpoint.version)
            if wanted is None:
                raise Inapplicable
            current, at = _converted(case, current, wanted), wanted
            outcome = _run(each.handler, self._request(current, obj, operation))
            if outcome.refusal is not None:
                raise Inapplicable
            if outcome.obj is not None:
                current = outcome.obj
                at.compiled.default(current)
        return _converted(case, current, version)

    def verdict(self, case: CheckCase, version: VersionSchema, obj: Object) -> str | None:
        """Return the first refusal of a create, or None."""
        for each in self._validators:
            endpoint = each.criteria.endpoint(self._matched_request(version.name, "CREATE"))
            wanted = None if endpoint is None else case.versions.get(endpoint.version)
            if wanted is None:
                continue
            seen = _converted(case, obj, wanted)
            refusal = _run(each.handler, self._request(seen, seen, "CREATE")).refusal
            if refusal is not None:
                return f"{each.handler.name}: {refusal.message}"
        return None

    def _matched_request(self, version: str, operation: str) -> MatchedRequest:
        return MatchedRequest(
            operation,
            self._endpoint(version),
            namespace="default" if self._crd.namespaced else "",
            name="x",
            equivalents=self._endpoints,
        )

    def _endpoint(self, version: str) -> RequestEndpoint:
        crd = self._crd
        kind = GroupVersionKind(crd.group, version, crd.names.kind)
        return RequestEndpoint(crd.group, version, crd.names.plural, kind)

    def _request(self, obj: Object, old: Object, operation: str) -> Object:
        metadata = obj.get("metadata") or {}
        return {
            "uid": "check",
            "operation": operation,
            "name": metadata.get("name", ""),
            "namespace": metadata.get("namespace", ""),
            "userInfo": {"username": "instar-check"},
            "object": obj,
            "oldObject": old if operation == "UPDATE" else None,
            "dryRun": True,
        }


def _run(handler: AdmissionHandler, request: Object) -> HandlerResult:
    """Run a handler; an exception of the handler breaks the checked law."""
    try:
        return handler.run(request)
    except Exception as error:
        text = f"{handler.name} fails with {type(error).__name__}: {error}"
        raise LawBroken(text, [("object", request["object"])]) from error


def _converted(case: CheckCase, obj: Object, to: VersionSchema) -> Object:
    if obj.get("apiVersion") == to.api_version:
        return obj
    try:
        return case.convert(obj, to)
    except (ConversionRejected, ContractBroken) as error:
        raise Inapplicable from error


def _idempotent(judge: HandlerRunner) -> Callable[[VersionPair, Sequence[Object]], None]:
    def check(pair: VersionPair, inputs: Sequence[Object]) -> None:
        once = judge.mutate(pair.case, pair.source, inputs[0], "CREATE")
        twice = judge.mutate(pair.case, pair.source, once, "CREATE")
        found = object_differences(once, twice)
        if found:
            steps = [("object", inputs[0]), ("mutated", once), ("mutated again", twice)]
            raise LawBroken("a second time changes it again", steps, found)

    return check


def _identity(judge: HandlerRunner) -> Callable[[VersionPair, Sequence[Object]], None]:
    def check(pair: VersionPair, inputs: Sequence[Object]) -> None:
        made = judge.mutate(pair.case, pair.source, inputs[0], "UPDATE")
        before, after = inputs[0], made
        steps = [("object", before), ("mutated", after)]
        for name in ("apiVersion", "kind"):
            if before.get(name) != after.get(name):
                raise LawBroken(f"{name} is changed", steps)
        theirs, ours = after.get("metadata") or {}, before["metadata"]
        changed = [name for name in _IDENTITY if theirs.get(name) != ours.get(name)]
        if changed:
            raise LawBroken(f"metadata.{changed[0]} may not change and is changed", steps)
        if pair.source.problems(copy_json(after)):
            raise Inapplicable  # the law "valid" reports it
        answer = update(pair.source.pipeline, copy_json(after), copy_json(before))
        if not answer.accepted:
            text = "an update that changed nothing is refused after it was mutated"
            raise LawBroken(text, steps, answer.refusals)

    return check


def _valid(judge: HandlerRunner) -> Callable[[VersionPair, Sequence[Object]], None]:
    def check(pair: VersionPair, inputs: Sequence[Object]) -> None:
        made = judge.mutate(pair.case, pair.source, inputs[0], "CREATE")
        problems = pair.source.problems(copy_json(made))
        if problems:
            steps = [("object", inputs[0]), ("mutated", made)]
            raise LawBroken("what was valid is not any more", steps, problems)

    return check


def _same_verdict(judge: HandlerRunner) -> Callable[[VersionPair, Sequence[Object]], None]:
    def check(pair: VersionPair, inputs: Sequence[Object]) -> None:
        obj = inputs[0]
        try:
            other = pair.case.view(obj, pair.target)
        except (ConversionRejected, ContractBroken) as error:
            raise Inapplicable from error
        here = judge.verdict(pair.case, pair.source, obj)
        there = judge.verdict(pair.case, pair.target, other)
        if (here is None) != (there is None):
            steps = [(f"at {pair.source.name}", obj), (f"at {pair.target.name}", other)]
            told = [
                f"{version.name}: {verdict or 'allowed'}"
                for version, verdict in ((pair.source, here), (pair.target, there))
            ]
            raise LawBroken("the same object is allowed at one version only", steps, told)

    return check


def laws(judge: HandlerRunner) -> tuple[list[Law], list[Law]]:
    """Return the laws about one version, and those about two."""
    single = [
        Law("idempotent", "a second mutation changes nothing", _idempotent(judge)),
        Law("immutable", "mutators leave identity and immutable fields alone", _identity(judge)),
        Law("valid", "what mutators make of a valid object is valid", _valid(judge)),
    ]
    return single, [Law("verdict", "the same verdict at every version", _same_verdict(judge))]


NAMES = ("idempotent", "immutable", "valid", "verdict")


def check_admission(
    crd: Crd,
    admission: Admission,
    responder: Responder | None,
    *,
    name: str,
    examples: int,
    seed: int | None,
    progress: Progress = lambda outcome: None,
) -> CheckReport:
    """Check every law at every served version.

    ``responder`` converts between versions; None for a CRD with conversion strategy None.
    """
    if responder is None and crd.conversion.strategy != "None":
        raise Uncheckable(f"{crd.name} converts by webhook: give --converter or --url, too")
    served = [each for each in crd.versions if each.served]
    case = CheckCase(
        crd,
        {each.name: schema_of(crd, each) for each in crd.versions},
        responder or RequestRelabelling(),
    )
    single, double = laws(HandlerRunner(admission, crd))
    chosen = seed if seed is not None else random.SystemRandom().randrange(2**32)
    report = CheckReport(crd.name, name, chosen)
    handlers = [each.function for each in admission.handlers]
    directed = DirectedInputs(case, most=most_directed_objects(examples), code=handlers)
    for version in served:
        here = case.versions[version.name]
        pairs = [(VersionPair(case, here, here), single)]
        pairs += [
            (VersionPair(case, here, case.versions[other.name]), double)
            for other in served
            if other is not version
        ]
        for pair, group in pairs:
            found = check_laws(pair, group, examples=examples, seed=chosen, directed=directed)
            for outcome in found:
                report.outcomes.append(outcome)
                progress(outcome)
    return report
