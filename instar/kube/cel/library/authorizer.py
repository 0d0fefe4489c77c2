"""CEL authorizer library: ``authorizer.group('apps').resource('deployments').check('get')``.

Collected by ``library/__init__.py``. Rules of CRDs can name these functions but have no authorizer
value; admission creates a ``CelAuthorizer`` with a function that decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.kube.cel.checking.cost_ranges import Range, exactly
from instar.kube.cel.functions import (
    LIST_COST,
    STRUCT_COST,
    TRAVERSAL,
    CallSite,
    CostEstimate,
    Overload,
    method,
)
from instar.kube.cel.library.formats import dns1123_label, dns1123_subdomain
from instar.kube.cel.types import BOOL, STRING, Type, message
from instar.kube.cel.values import CelError, Opaque

_PREFIX = "kubernetes.authorization"
AUTHORIZER = message(f"{_PREFIX}.Authorizer")
PATH_CHECK = message(f"{_PREFIX}.PathCheck")
GROUP_CHECK = message(f"{_PREFIX}.GroupCheck")
RESOURCE_CHECK = message(f"{_PREFIX}.ResourceCheck")
DECISION = message(f"{_PREFIX}.Decision")
_CHECK_COST = 350_000
"""Set so that one expression can afford two checks."""
_REQUIREMENTS_PER_CHARACTER = 0.5


@dataclass(frozen=True, slots=True)
class CelAuthzQuestion:
    """The authorization request: a path, or a resource with its namespace, name and selectors."""

    verb: str
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""
    service_account: tuple[str, str] | None = None
    """Namespace and name of a service account, if not the request's user is checked."""


@dataclass(frozen=True, slots=True)
class CelAuthzDecision(Opaque):
    """Result of a check of the variable ``authorizer`` in an expression."""

    cel_type = DECISION.name
    allowed: bool
    reason: str = ""
    error: str = ""


Decide = Callable[[CelAuthzQuestion], CelAuthzDecision]


@dataclass(frozen=True, slots=True)
class CelAuthorizer(Opaque):
    """The variable ``authorizer`` of an expression."""

    cel_type = AUTHORIZER.name
    decide: Decide
    service_account: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class PathCheck(Opaque):
    cel_type = PATH_CHECK.name
    decide: Decide
    question: CelAuthzQuestion


@dataclass(frozen=True, slots=True)
class GroupCheck(Opaque):
    cel_type = GROUP_CHECK.name
    decide: Decide
    question: CelAuthzQuestion


@dataclass(frozen=True, slots=True)
class ResourceCheck(Opaque):
    cel_type = RESOURCE_CHECK.name
    decide: Decide
    question: CelAuthzQuestion


def _path(of: CelAuthorizer, path: str) -> PathCheck:
    if not path.strip():
        raise CelError("path must not be empty")
    return PathCheck(of.decide, CelAuthzQuestion("", path=path, service_account=of.service_account))


def _group(of: CelAuthorizer, group: str) -> GroupCheck:
    return GroupCheck(
        of.decide, CelAuthzQuestion("", group=group, service_account=of.service_account)
    )


def _service_account(of: CelAuthorizer, namespace: str, name: str) -> CelAuthorizer:
    if dns1123_subdomain(name):
        raise CelError("Invalid service account name")
    if dns1123_label(namespace):
        raise CelError("Invalid service account namespace")
    return CelAuthorizer(of.decide, (namespace, name))


def _resource(of: GroupCheck, resource: str) -> ResourceCheck:
    if not resource.strip():
        raise CelError("resource must not be empty")
    return ResourceCheck(of.decide, replace(of.question, resource=resource))


def _field_setter(field: str) -> Callable[[ResourceCheck, str], ResourceCheck]:
    def narrow(of: ResourceCheck, value: str) -> ResourceCheck:
        change: dict[str, Any] = {field: value}
        return ResourceCheck(of.decide, replace(of.question, **change))

    return narrow


def _check(of: PathCheck | ResourceCheck, verb: str) -> CelAuthzDecision:
    return of.decide(replace(of.question, verb=verb))


def _check_method(of: Type) -> Overload:
    return method(
        "check",
        (of, STRING),
        DECISION,
        _check,
        work=lambda *_sizes: _CHECK_COST,
        estimate=lambda _site: CostEstimate(exactly(_CHECK_COST)),
        by_name=True,
    )


def _selector_cost(length: Range) -> Range:
    """Estimate a list of requirements, each of them a list and an object."""
    requirements = length.scaled(_REQUIREMENTS_PER_CHARACTER)
    made = requirements.scaled(float(LIST_COST + STRUCT_COST))
    return exactly(LIST_COST).plus(length.scaled(TRAVERSAL)).plus(made)


def _estimated_selector(site: CallSite) -> CostEstimate:
    return CostEstimate(_selector_cost(site.args[0].known()))


def _selector_method(name: str, field: str) -> Overload:
    return method(
        name,
        (RESOURCE_CHECK, STRING),
        RESOURCE_CHECK,
        _field_setter(field),
        work=lambda _check, text: _selector_cost(exactly(text)).high,
        estimate=_estimated_selector,
        by_name=True,
    )


def overloads() -> list[Overload]:
    narrowing: list[Overload] = [
        method(name, (RESOURCE_CHECK, STRING), RESOURCE_CHECK, _field_setter(name))
        for name in ("subresource", "namespace", "name")
    ]
    asking: list[tuple[str, Type, Callable[[Any], Any]]] = [
        ("errored", BOOL, lambda decision: bool(decision.error)),
        ("error", STRING, lambda decision: decision.error),
        ("allowed", BOOL, lambda decision: decision.allowed),
        ("reason", STRING, lambda decision: decision.reason),
    ]
    account = (AUTHORIZER, STRING, STRING)
    return [
        method("path", (AUTHORIZER, STRING), PATH_CHECK, _path),
        method("group", (AUTHORIZER, STRING), GROUP_CHECK, _group),
        method("serviceAccount", account, AUTHORIZER, _service_account),
        method("resource", (GROUP_CHECK, STRING), RESOURCE_CHECK, _resource),
        *narrowing,
        _check_method(PATH_CHECK),
        _check_method(RESOURCE_CHECK),
        *(method(name, (DECISION,), result, impl) for name, result, impl in asking),
        _selector_method("fieldSelector", "field_selector"),
        _selector_method("labelSelector", "label_selector"),
    ]


def type_names() -> list[tuple[str, Type]]:
    types = (AUTHORIZER, PATH_CHECK, GROUP_CHECK, RESOURCE_CHECK, DECISION)
    return [(each.name, each) for each in types]
