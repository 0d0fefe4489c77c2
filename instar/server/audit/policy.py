"""Audit policy: which requests are recorded, at which level and stages.

``setup.py`` reads it from a document; ``auditor.py`` evaluates it for each request. Checks and
messages are kube-apiserver's; no I/O here.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

from instar.base.config_shapes import ShapeMismatch, unknown_fields
from instar.base.field_errors import FieldError, child, index, invalid, not_supported, required
from instar.kube.access.attributes import Attributes

API_VERSION, KIND = "audit.k8s.io/v1", "Policy"


class AuditLevel(IntEnum):
    """How much of a request is recorded."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3

    @property
    def text(self) -> str:
        return _LEVELS[self]


_LEVELS = ("None", "Metadata", "Request", "RequestResponse")


class AuditStage(StrEnum):
    """When in a request an event is recorded."""

    RECEIVED = "RequestReceived"
    STARTED = "ResponseStarted"
    COMPLETE = "ResponseComplete"
    PANIC = "Panic"


class GroupResources(NamedTuple):
    group: str
    resources: tuple[str, ...]
    names: tuple[str, ...]

    def covers(self, asked: Attributes) -> bool:
        if self.group not in ("*", asked.group):
            return False
        if self.resources and not any(_covers(each, asked) for each in self.resources):
            return False
        return not self.names or asked.name in self.names


class AuditRule(NamedTuple):
    """Conditions of a rule; an empty one matches everything."""

    level: AuditLevel
    users: tuple[str, ...]
    groups: tuple[str, ...]
    verbs: tuple[str, ...]
    namespaces: tuple[str, ...]
    resources: tuple[GroupResources, ...]
    paths: tuple[str, ...]
    omitted: frozenset[str]
    bare: bool
    """Whether managedFields are left out of objects."""

    def covers(self, asked: Attributes) -> bool:
        if self.users and asked.user.name not in self.users:
            return False
        if self.groups and not any(group in self.groups for group in asked.user.groups):
            return False
        if self.verbs and asked.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            return bool(asked.resource) and self._covers_resource(asked)
        if self.paths:
            return not asked.resource and any(_covers_path(p, asked.path) for p in self.paths)
        return True

    def _covers_resource(self, asked: Attributes) -> bool:
        if self.namespaces and asked.namespace not in self.namespaces:
            return False
        return not self.resources or any(each.covers(asked) for each in self.resources)


class AuditDecision(NamedTuple):
    """What the policy says of one request: level and omitted stages."""

    level: AuditLevel
    omitted: frozenset[str]
    bare: bool


NOTHING = AuditDecision(AuditLevel.NONE, frozenset(), False)


class AuditPolicy(NamedTuple):
    """Rules in order; the first that matches a request decides."""

    rules: tuple[AuditRule, ...]
    unknown: tuple[str, ...] = ()
    """Unknown fields, which are logged and ignored as in kube-apiserver."""

    def decide(self, asked: Attributes) -> AuditDecision:
        """Decide by the first rule that matches; without one nothing is recorded."""
        for rule in self.rules:
            if rule.covers(asked):
                return AuditDecision(rule.level, rule.omitted, rule.bare)
        return NOTHING


class AuditPolicyError(Exception):
    """A wrong policy; ``str()`` is one line."""


def read(document: Any) -> AuditPolicy:
    """Raises ``AuditPolicyError``."""
    if not isinstance(document, dict):
        raise AuditPolicyError("it is no object")
    api_version, kind = document.get("apiVersion"), document.get("kind")
    if (api_version, kind) != (API_VERSION, KIND):
        raise AuditPolicyError(
            f"unknown group version field in policy: {api_version!r}, kind {kind!r} "
            f"(expected {API_VERSION}, {KIND})"
        )
    try:
        unknown = unknown_fields(document, _SHAPE)
    except ShapeMismatch as error:
        raise AuditPolicyError(str(error)) from error
    rules = document.get("rules") or []
    found = _stage_errors(document.get("omitStages") or [], "omitStages")
    for position, rule in enumerate(rules):
        found += _rule_errors(rule or {}, index("rules", position))
    if found:
        texts = list(dict.fromkeys(map(str, found)))
        raise AuditPolicyError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    if not rules:
        raise AuditPolicyError("loaded illegal policy with 0 rules")
    everywhere = frozenset(document.get("omitStages") or ())
    bare = bool(document.get("omitManagedFields"))
    return AuditPolicy(tuple(_rule(rule, everywhere, bare) for rule in rules), tuple(unknown))


_TEXTS = [str]
_SHAPE: Any = {
    "apiVersion": str,
    "kind": str,
    "metadata": None,
    "omitStages": _TEXTS,
    "omitManagedFields": bool,
    "rules": [
        {
            "level": str,
            "users": _TEXTS,
            "userGroups": _TEXTS,
            "verbs": _TEXTS,
            "namespaces": _TEXTS,
            "resources": [{"group": str, "resources": _TEXTS, "resourceNames": _TEXTS}],
            "nonResourceURLs": _TEXTS,
            "omitStages": _TEXTS,
            "omitManagedFields": bool,
        }
    ],
}


def _rule_errors(rule: dict[str, Any], at: str) -> list[FieldError]:
    found = _level_errors(rule.get("level") or "", child(at, "level"))
    paths, resources = rule.get("nonResourceURLs") or [], rule.get("resources") or []
    if paths and (resources or rule.get("namespaces")):
        detail = "rules cannot apply to both regular resources and non-resource URLs"
        found.append(invalid(child(at, "nonResourceURLs"), paths, detail))
    for number, path in enumerate(paths):
        found += _path_errors(path, index(child(at, "nonResourceURLs"), number))
    for number, each in enumerate(resources):
        each = each or {}
        if each.get("resourceNames") and not each.get("resources"):
            place = child(index(child(at, "resources"), number), "resourceNames")
            detail = "using resourceNames requires at least one resource"
            found.append(invalid(place, each["resourceNames"], detail))
    return found + _stage_errors(rule.get("omitStages") or [], child(at, "omitStages"))


def _level_errors(level: str, at: str) -> list[FieldError]:
    if not level:
        return [required(at)]
    return [] if level in _LEVELS else [not_supported(at, level, _LEVELS)]


def _path_errors(path: str, at: str) -> list[FieldError]:
    if path == "*":
        return []
    found = []
    if not path.startswith("/"):
        detail = "non-resource URL rules must begin with a '/' character"
        found.append(invalid(at, path, detail))
    if "*" in path[:-1]:
        detail = "non-resource URL wildcards '*' must be the final character of the rule"
        found.append(invalid(at, path, detail))
    return found


def _stage_errors(stages: Sequence[str], at: str) -> list[FieldError]:
    known = [stage.value for stage in AuditStage]
    detail = f"allowed stages are {','.join(known)}"
    return [
        invalid(index(at, number), stage, detail)
        for number, stage in enumerate(stages)
        if stage not in known
    ]


def _rule(rule: dict[str, Any], omitted: frozenset[str], bare: bool) -> AuditRule:
    own = rule.get("omitManagedFields")
    return AuditRule(
        AuditLevel(_LEVELS.index(rule["level"])),
        tuple(rule.get("users") or ()),
        tuple(rule.get("userGroups") or ()),
        tuple(rule.get("verbs") or ()),
        tuple(rule.get("namespaces") or ()),
        tuple(_group(each or {}) for each in rule.get("resources") or ()),
        tuple(rule.get("nonResourceURLs") or ()),
        omitted | frozenset(rule.get("omitStages") or ()),
        bare if own is None else own,
    )


def _group(each: dict[str, Any]) -> GroupResources:
    return GroupResources(
        each.get("group") or "",
        tuple(each.get("resources") or ()),
        tuple(each.get("resourceNames") or ()),
    )


def _covers(pattern: str, asked: Attributes) -> bool:
    """``*``, ``pods``, ``pods/log``, ``*/scale``, ``pods/*`` (which covers ``pods``, too)."""
    if pattern == "*":
        return True
    resource, slash, sub = pattern.partition("/")
    if not slash:
        return resource == asked.resource and not asked.subresource
    if sub == "*" and resource == asked.resource:
        return True
    return resource in ("*", asked.resource) and sub == asked.subresource


def _covers_path(pattern: str, path: str) -> bool:
    if pattern.endswith("*"):
        return path.startswith(pattern[:-1])
    return path == pattern
