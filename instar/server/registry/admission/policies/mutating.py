"""Evaluates MutatingAdmissionPolicies: mutations run in sequence, each on the previous result.

Called by ``plugin.py`` through ``evaluators.py``. The chain runs a second time when any mutation
ran; a policy with ``IfNeeded`` that ran in the first pass then runs once more. As upstream,
policies that match at different versions work on separate copies, and the copy of the last policy
is kept.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cache, partial
from time import perf_counter
from typing import Final, NamedTuple

from instar.base import errors, offload
from instar.base.json_values import Object, copy_json
from instar.kube.admission.evaluation import ExpressionInputs
from instar.kube.admission.match_rules import RequestEndpoint
from instar.kube.admission.policies.mutating import (
    JSON_PATCH,
    MutatingProgram,
    Mutation,
    MutationFailed,
)
from instar.kube.admission.policies.mutation_errors import (
    MutationRejected,
    misconfigured_policy_error,
    refusal_error,
)
from instar.kube.admission.policies.params import ParamError
from instar.kube.api.names import GroupVersionKind
from instar.kube.apply.ownership_schema import TypedSchema, compile_schema
from instar.kube.facts.types import schema_of
from instar.kube.schema.structure.parse import structural
from instar.server.registry.admission.policies.definitions import (
    Binding,
    BoundPolicy,
    PolicyDefinition,
    PolicyDefinitions,
)
from instar.server.registry.admission.policies.evaluate import evaluate, program_of
from instar.server.registry.admission.policies.metrics import PolicyMetrics
from instar.server.registry.admission.policies.params import (
    ParamKind,
    ParamSource,
    param_kind,
)
from instar.server.registry.admission.policies.validating import inputs_for
from instar.server.registry.admission.request_view import RequestView, RequestViews, refused_name
from instar.server.registry.resources.admission import Operation
from instar.server.registry.resources.serving import VersionServing

_NO_ERROR: Final = "no_error"


class _Invocation(NamedTuple):
    policy: PolicyDefinition
    binding: Binding
    endpoint: RequestEndpoint
    params: Object | None

    def key(self) -> Hashable:
        metadata = (self.params or {}).get("metadata") or {}
        param = metadata.get("namespace", ""), metadata.get("name", "")
        return self.policy.name, self.binding.name, param


class _Passes:
    """State of the first pass for the second."""

    def __init__(self) -> None:
        self.invoked: set[Hashable] = set()
        """Policies to be invoked again after later changes."""
        self.due: set[Hashable] = set()
        self.left: Object | None = None
        """The object as the policies left it."""

    def over(self) -> bool:
        """Return whether no policy is to run once more."""
        return not self.invoked and not self.due

    def require(self) -> None:
        self.due |= self.invoked
        self.invoked = set()


class _Run:
    """One pass over one request."""

    def __init__(self, operation: Operation, subject: RequestView) -> None:
        self.operation, self.subject = operation, subject
        self.refused: list[MutationRejected] = []
        self.copies: dict[str, Object] = {}
        self.last: RequestEndpoint | None = None
        """Endpoint of the last mutation."""


class MutatingPolicies:
    def __init__(
        self,
        bound: BoundPolicy,
        subjects: RequestViews,
        params: ParamSource,
        metrics: PolicyMetrics,
    ) -> None:
        self._bound, self._subjects, self._params = bound, subjects, params
        self._checks = metrics.mutating

    async def mutate(self, operation: Operation) -> None:
        hooks = self._bound.concerning(operation)
        passes = operation.notes.get(_Passes)
        if not hooks or (operation.round and passes is not None and passes.over()):
            return
        run = _Run(operation, self._subjects.of(operation, validating=False))
        invocations: list[_Invocation] = []
        breaks = offload.Breaks()
        for hook in hooks:
            endpoint = await run.subject.means(hook.policy.criteria)
            if endpoint is not None:
                invocations += await self._invocations(run, hook, endpoint)
            await breaks.between()
        if invocations:
            if passes is None:
                passes = operation.notes[_Passes] = _Passes()
            if operation.round and passes.left != operation.obj:
                passes.require()
            for invocation in invocations:
                await self._invoke(run, invocation, passes)
                await breaks.between()
            await self._keep(run, passes)
            passes.left = None if passes.over() else copy_json(operation.obj)
        if run.refused:
            raise _denied(operation, run.refused)

    async def _invocations(
        self, run: _Run, hook: PolicyDefinitions, endpoint: RequestEndpoint
    ) -> list[_Invocation]:
        policy, kind = hook.policy, None
        if policy.param_kind is not None:
            try:
                kind = await param_kind(self._params, policy.param_kind)
            except ParamError as error:
                refusal = misconfigured_policy_error(policy.name, None, str(error))
                self._refuse(run, policy, refusal)
                return []
        found: list[_Invocation] = []
        for binding in hook.bindings:
            criteria = binding.criteria
            if criteria is not None and await run.subject.means(criteria) is None:
                continue
            try:
                params = await self._collect(kind, binding, run.subject)
            except ParamError as error:
                self._refuse(
                    run, policy, misconfigured_policy_error(policy.name, binding.name, str(error))
                )
                continue
            found += [_Invocation(policy, binding, endpoint, each) for each in params]
        return found

    async def _collect(
        self, kind: ParamKind | None, binding: Binding, subject: RequestView
    ) -> list[Object | None]:
        if kind is None or binding.param_ref is None:
            return [None]
        namespace = subject.asked.namespace
        return [*await kind.collect(binding.param_ref, namespace)]

    def _refuse(self, run: _Run, policy: PolicyDefinition, refused: MutationRejected) -> None:
        if not policy.ignores:
            run.refused.append(refused)

    async def _invoke(self, run: _Run, invocation: _Invocation, passes: _Passes) -> None:
        policy, binding, endpoint, params = invocation
        program = await program_of(policy, MutatingProgram)
        try:
            inputs = await inputs_for(run.subject, endpoint, program.reads)
        except ParamError as error:
            self._refuse(run, policy, misconfigured_policy_error(policy.name, None, str(error)))
            return
        present = run.copies.get(endpoint.api_version, inputs.obj)
        inputs = inputs._replace(obj=present, params=params)
        matched = await evaluate(policy, inputs, program.match)
        if not matched.holds:
            if matched.errors:
                self._refuse(run, policy, MutationRejected(policy.name, binding.name, matched.text))
            return
        if run.operation.round and invocation.key() not in passes.due:
            return
        for mutation in program.mutations:
            if inputs.obj is not None:
                run.last = endpoint
                inputs = await self._apply_mutation(run, invocation, program, mutation, inputs)
        if inputs.obj != present:
            run.copies[endpoint.api_version] = inputs.obj
            passes.require()
            run.operation.again = True
        if policy.spec.get("reinvocationPolicy") == "IfNeeded":
            passes.invoked.add(invocation.key())

    async def _apply_mutation(
        self,
        run: _Run,
        invocation: _Invocation,
        program: MutatingProgram,
        mutation: Mutation,
        inputs: ExpressionInputs,
    ) -> ExpressionInputs:
        """Return the inputs with the mutated object; unchanged where the mutation failed."""
        policy, binding, endpoint, _ = invocation
        began = perf_counter()
        try:
            work = partial(program.mutate, mutation, _schema(run.operation, endpoint))
            obj = await evaluate(policy, inputs, work)
            obj = _default_patched(run.operation, endpoint, mutation, obj, inputs.obj)
        except MutationFailed as error:
            spent = perf_counter() - began
            self._checks.observe(policy.name, binding.name, error.error.value, "deny", spent)
            self._refuse(run, policy, MutationRejected(policy.name, binding.name, str(error)))
            return inputs
        spent = perf_counter() - began
        self._checks.observe(policy.name, binding.name, _NO_ERROR, "allow", spent)
        return inputs._replace(obj=obj)

    async def _keep(self, run: _Run, passes: _Passes) -> None:
        """Store the last policy's object into the operation."""
        operation, last = run.operation, run.last
        if last is None or operation.obj is None:
            return
        passes.require()
        operation.again = True
        left = run.copies.get(last.api_version)
        if left is None:
            return
        own = run.subject.asked.endpoint
        try:
            shown = await run.subject.converted(left, last, own)
        except errors.ApiError as error:
            raise errors.Internal(f"failed to convert object: {error.message}") from error
        if shown is not operation.obj and shown != operation.obj:
            operation.obj.clear()
            operation.obj.update(copy_json(shown))
            operation.changed = True
        operation.notes.pop(RequestView, None)


def _version(operation: Operation, endpoint: RequestEndpoint) -> VersionServing:
    return operation.target.serving.version_at(endpoint.api_version)


def _schema(operation: Operation, endpoint: RequestEndpoint) -> TypedSchema | None:
    """Return the schema for merging apply configurations. As upstream, subresource kinds of custom
    resources (Scale) have none."""
    if operation.kind is None:
        return _version(operation, endpoint).typed
    return _part_schema(operation.kind) if operation.target.serving.builtin else None


@cache
def _part_schema(kind: GroupVersionKind) -> TypedSchema | None:
    """Return the schema of an object posted to a built-in kind's subresource (Scale, Eviction,
    Binding)."""
    found = schema_of(str(kind.group_version), kind.kind)
    return None if found is None else compile_schema(structural(found))


def _default_patched(
    operation: Operation, endpoint: RequestEndpoint, mutation: Mutation, obj: Object, before: Object
) -> Object:
    """Return the patched object with defaults, as after every mutation, but not pruned."""
    serving = operation.target.serving
    if operation.kind is not None:
        if mutation.patch_type == JSON_PATCH and not serving.builtin:
            group_version = operation.kind.group_version
            text = f"request to convert CR to an invalid group/version: {group_version}"
            raise MutationFailed(text)
        return obj
    if obj is before:
        return obj
    try:
        serving.strategy.readmit(obj, _version(operation, endpoint))
    except errors.BadRequest as error:
        raise errors.Internal(error.message) from error
    return obj


def _denied(operation: Operation, refused: list[MutationRejected]) -> errors.ApiError:
    serving, name = operation.target.serving, refused_name(operation)
    generic = errors.forbidden(serving.group, serving.plural, name, "")
    return refusal_error(refused, generic.details or {})
