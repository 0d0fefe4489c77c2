"""Removes a field from a CRD in stages: deprecate, warn on writes, count uses, remove. Pure.

``instar fields`` and the console's fields view call it, and the redaction of snapshots uses its
paths. Clients that still set the field keep working until it is removed, and the objects that set
it are counted before the removal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.kube.apply.field_usage import ANY_ITEM, ANY_KEY, FieldUse
from instar.kube.cel.syntax.property_names import escape

MARK = "Deprecated: "
_STEP = re.compile(r"([^.\[\]]+)|(\[\*\])")


class NoSuchField(Exception):
    """No version's schema has the path."""


@dataclass(frozen=True, slots=True)
class Deprecation:
    """A deprecated field of a version, with its message."""

    version: str
    path: str
    text: str


class FieldHolders(NamedTuple):
    """The objects that set one field, counted at the version that shows most of them."""

    use: FieldUse
    total: int
    version: str
    """Empty if no version that has the field can be read."""
    unread: tuple[str, ...]
    """Versions that may show the field in more objects, and are not served."""
    is_elsewhere: bool
    """Whether the version is not the one at which objects are read and written."""

    def says(self) -> str:
        if not self.version:
            return f"objects that set {self.use.path} cannot be counted"
        where = f" at {self.version}" if self.is_elsewhere else ""
        return self.use.says(self.total) + where


def steps_of(path: str) -> list[str]:
    """Split ``spec.ports[*].name`` into its parts. Raises ``ValueError`` for an invalid path."""
    found = [name or star for name, star in _STEP.findall(path)]
    shown = "".join(step if step == ANY_ITEM else f".{step}" for step in found)
    if not found or shown != f".{path}":
        raise ValueError(f"{path!r} is no field; write spec.name, spec.list[*].name or spec.map.*")
    return found


def deprecate(crd: Object, path: str, text: str) -> list[str]:
    """Mark the field as deprecated in every version's schema that has it; return these versions."""
    changed = []
    for version, holder, name in _places(crd, path):
        node = holder[name]
        before = str(node.get("description") or "")
        plain = before.partition("\n\n")[2] if before.startswith(MARK) else before
        after = f"{MARK}{text}" + (f"\n\n{plain}" if plain else "")
        if after != before:
            node["description"] = after
            changed.append(version)
    return changed


def remove(crd: Object, path: str) -> list[str]:
    """Remove the field from every version's schema; return the changed versions."""
    changed = []
    for version, holder, name in list(_places(crd, path)):
        holder.pop(name, None)
        changed.append(version)
    leaf = steps_of(path)[-1]
    for schema in _holders(crd, steps_of(path)[:-1]):
        required = schema.get("required")
        if required and leaf in required:
            schema["required"] = [item for item in required if item != leaf]
            if not schema["required"]:
                del schema["required"]
    return changed


def deprecated(crd: Object) -> list[Deprecation]:
    """Return every field that a schema marks as deprecated."""
    found = []
    for version in crd["spec"]["versions"]:
        for path, node in _walked((version.get("schema") or {}).get("openAPIV3Schema") or {}):
            text = str(node.get("description") or "")
            if text.startswith(MARK):
                first = text.removeprefix(MARK).partition("\n")[0]
                found.append(Deprecation(version["name"], path, first))
    return sorted(found, key=lambda item: (item.path, item.version))


def field_paths(schema: Mapping[str, Any]) -> set[str]:
    """Return every field of a schema, in the notation of a field census."""
    return {path for path, _ in _walked(schema)}


def _walked(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    todo: list[tuple[str, Mapping[str, Any]]] = [("", schema)]
    while todo:
        path, node = todo.pop()
        if path:
            yield path.removeprefix("."), node
        for name, inner in (node.get("properties") or {}).items():
            todo.append((f"{path}.{name}", inner))
        for key, mark in (("items", ANY_ITEM), ("additionalProperties", f".{ANY_KEY}")):
            if isinstance(node.get(key), dict):
                todo.append((path + mark, node[key]))


def versions_with(crd: Object, path: str) -> list[str]:
    """Return the versions whose schema has the field. Raises ``NoSuchField``."""
    return [version for version, _, _ in _places(crd, path)]


def blocks_removal(holders: FieldHolders, marked: bool) -> list[str]:
    """Return why a field must not be removed yet."""
    found = []
    if holders.use.objects:
        found.append(holders.says())
    if holders.unread:
        names = ", ".join(holders.unread)
        found.append(
            f"what objects set at {names} cannot be read, because it is not served; serve it, or "
            "remove that version first"
        )
    if not marked:
        found.append("it was never announced; deprecate it first")
    return found


def policy(crd: Object, path: str, text: str, *, deny: bool = False) -> list[Object]:
    """Return a ValidatingAdmissionPolicy and its binding that warn on every write of the field.
    CEL rules of a schema can only refuse; a policy can warn, and one delete removes it.
    """
    spec = crd["spec"]
    name = re.sub(r"[^a-z0-9.-]+", "-", f"deprecated-{path}.{crd['metadata']['name']}".lower())
    rules = {
        "apiGroups": [spec["group"]],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [spec["names"]["plural"]],
    }
    head = {"apiVersion": "admissionregistration.k8s.io/v1"}
    return [
        {
            **head,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name[:253]},
            "spec": {
                "failurePolicy": "Ignore",
                "matchConstraints": {"resourceRules": [rules]},
                "validations": [
                    {"expression": absent(path), "message": f"{path} is deprecated: {text}"}
                ],
            },
        },
        {
            **head,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name[:253]},
            "spec": {
                "policyName": name[:253],
                "validationActions": ["Deny" if deny else "Warn", "Audit"],
            },
        },
    ]


def absent(path: str) -> str:
    """Return a CEL expression that is true for objects without the field."""
    return _absent("object", steps_of(path), 0)


def _absent(base: str, steps: list[str], depth: int) -> str:
    head, *rest = steps
    if head in (ANY_ITEM, ANY_KEY):
        each = f"x{depth}"
        if not rest:
            return f"size({base}) == 0"
        value = each if head == ANY_ITEM else f"{base}[{each}]"
        return f"{base}.all({each}, {_absent(value, rest, depth + 1)})"
    name = escape(head)
    if name is None:
        raise NoSuchField(f"no expression can name {head!r}, so no client can be warned about it")
    field = f"{base}.{name}"
    missing = f"!has({field})"
    return missing if not rest else f"({missing} || {_absent(field, rest, depth)})"


def _places(crd: Object, path: str) -> Iterator[tuple[str, Any, str]]:
    """Yield version, the ``properties`` that contain the field, and its name. Raises
    ``NoSuchField``.
    """
    steps = steps_of(path)
    if steps[-1] in (ANY_ITEM, ANY_KEY):
        raise NoSuchField(f"{path} names no field but what is in one")
    seen = False
    for version in crd["spec"]["versions"]:
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        holder = _walk(schema, steps[:-1])
        properties = None if holder is None else holder.get("properties")
        if properties and steps[-1] in properties:
            seen = True
            yield version["name"], properties, steps[-1]
    if not seen:
        raise NoSuchField(f"no version of {crd['metadata']['name']} has a field {path}")


def _holders(crd: Object, steps: list[str]) -> Iterator[Any]:
    for version in crd["spec"]["versions"]:
        found = _walk((version.get("schema") or {}).get("openAPIV3Schema"), steps)
        if found is not None:
            yield found


def _walk(node: Any, steps: list[str]) -> Any:
    for step in steps:
        if not isinstance(node, dict):
            return None
        if step == ANY_ITEM:
            node = node.get("items")
        elif step == ANY_KEY:
            node = node.get("additionalProperties")
        else:
            node = (node.get("properties") or {}).get(step)
    return node if isinstance(node, dict) else None
