"""FlowSchemas: parsed from objects, and matched against the attributes of a request.

``server/flow_control/configuration.py`` parses the stored objects; its classifier calls
``classify`` once per kind of request and remembers the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.access.attributes import ACCOUNT_PREFIX, Attributes, User, account_name

CATCH_ALL = "catch-all"
EXEMPT = "exempt"
BY_USER, BY_NAMESPACE = "ByUser", "ByNamespace"
_ALL = "*"
Matcher = Callable[[Attributes], bool]


@dataclass(frozen=True, slots=True)
class FlowSchema:
    """A parsed FlowSchema."""

    name: str
    uid: str
    level: str
    """Name of its priority level."""
    precedence: int
    distinguisher: str
    """``ByUser``, ``ByNamespace``, or empty: then all its requests are one flow."""
    rules: tuple[Object, ...]

    def matches(self, asked: Attributes) -> bool:
        return any(_matches_rule(rule, asked) for rule in self.rules)

    def flow_of(self, asked: Attributes) -> str:
        """Return what distinguishes the flow of this request from others of the schema."""
        if self.distinguisher == BY_USER:
            return asked.user.name
        return asked.namespace if self.distinguisher == BY_NAMESPACE else ""


def flow_schema_of(obj: Object) -> FlowSchema:
    metadata, spec = obj["metadata"], obj["spec"]
    return FlowSchema(
        name=metadata["name"],
        uid=metadata.get("uid") or "",
        level=spec["priorityLevelConfiguration"]["name"],
        precedence=spec.get("matchingPrecedence") or 1000,
        distinguisher=(spec.get("distinguisherMethod") or {}).get("type") or "",
        rules=tuple(spec.get("rules") or ()),
    )


def in_matching_order(schemas: Iterable[FlowSchema]) -> list[FlowSchema]:
    """Sort schemas as they are tried: the lowest precedence first, then by name."""
    return sorted(schemas, key=lambda schema: (schema.precedence, schema.name))


def classify(schemas: Sequence[FlowSchema], asked: Attributes) -> FlowSchema:
    """Return the first schema that matches; ``catch-all``, which must be among them, takes the
    rest."""
    for schema in schemas:
        if schema.matches(asked):
            return schema
    return next(schema for schema in schemas if schema.name == CATCH_ALL)


def _matches_rule(rule: Object, asked: Attributes) -> bool:
    if not any(_is_subject(subject, asked.user) for subject in rule.get("subjects") or ()):
        return False
    if asked.resource:
        return any(_is_resource(each, asked) for each in rule.get("resourceRules") or ())
    return any(_is_path(each, asked) for each in rule.get("nonResourceRules") or ())


def _is_subject(subject: Object, user: User) -> bool:
    kind = subject.get("kind")
    if kind == "User":
        return _contains([(subject.get("user") or {}).get("name")], user.name)
    if kind == "Group":
        name = (subject.get("group") or {}).get("name")
        return name == _ALL or name in user.groups
    if kind != "ServiceAccount":
        return False
    account = subject.get("serviceAccount") or {}
    namespace, name = account.get("namespace") or "", account.get("name") or ""
    if name == _ALL:
        return user.name.startswith(f"{ACCOUNT_PREFIX}{namespace}:")
    return user.name == account_name(namespace, name)


def _is_resource(rule: Object, asked: Attributes) -> bool:
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    fits = (
        _contains(rule.get("verbs"), asked.verb)
        and _contains(rule.get("resources"), resource)
        and _contains(rule.get("apiGroups"), asked.group)
    )
    if not fits:
        return False
    if not asked.namespace:
        return bool(rule.get("clusterScope"))
    return _contains(rule.get("namespaces"), asked.namespace)


def _is_path(rule: Object, asked: Attributes) -> bool:
    if not _contains(rule.get("verbs"), asked.verb):
        return False
    return any(_covers(pattern, asked.path) for pattern in rule.get("nonResourceURLs") or ())


def _covers(pattern: str, path: str) -> bool:
    """Return whether a path is the pattern or lies below it, with and without its ``*``."""
    below = pattern.removesuffix(_ALL)
    return pattern in (_ALL, path) or path.startswith(below if below.endswith("/") else below + "/")


def _contains(names: Sequence[str | None] | None, name: str) -> bool:
    found = names or ()
    return name in found or list(found) == [_ALL]
