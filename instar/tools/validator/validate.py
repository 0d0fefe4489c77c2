"""Validates documents by dry-run requests to an embedded server, which applies all validation.

Called by ``run.py``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from instar.base.json_values import Object, copy_json, same_json
from instar.kube.api.crd import is_crd
from instar.kube.api.encoding.manifests import Document
from instar.kube.api.names import parse_group_version
from instar.server.lifecycle.embedded import Embedded, EmbeddedReply, ServedKind
from instar.tools.validator.error_location import pointer_of
from instar.tools.validator.fault_search import fault_pointer
from instar.tools.validator.removed_apis import REMOVED
from instar.tools.validator.report import ValidatedObject, ValidationFinding, ValidationLevel

_CRDS = "/apis/apiextensions.k8s.io"
_CRD_PLURAL = "customresourcedefinitions"
_NAMESPACE = "default"
_VERSION = "apiVersion"
_BAD_REQUEST = 400

Send = Callable[[Object], Awaitable[EmbeddedReply]]


class ObjectKey(NamedTuple):
    """Identity of an object, independent of its version."""

    group: str
    kind: str
    namespace: str
    name: str


def identity(obj: Object) -> ObjectKey:
    """Return the key of an object, independent of its version."""
    metadata = obj.get("metadata") if isinstance(obj.get("metadata"), dict) else {}
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    place = str((metadata or {}).get("namespace") or _NAMESPACE)
    return ObjectKey(group, str(obj.get("kind", "")), place, str((metadata or {}).get("name", "")))


class ManifestValidator:
    """Sends manifests to an embedded server as dry runs and collects what it rejects."""

    def __init__(self, api: Embedded, old: Mapping[ObjectKey, Object] | None = None) -> None:
        self._api = api
        self._old = old or {}
        self._installed: dict[tuple[str, int], list[ValidationFinding]] = {}
        """What the server refused of CRDs, by file and line."""

    async def install(
        self, document: Document, *, converts: bool = False
    ) -> list[ValidationFinding]:
        """Install a CRD and return the findings that prevent it. Its webhook is unreachable, and
        writes are validated at their own version, so without a converter conversion is disabled.
        """
        crd: Object = copy_json(document.value)
        spec = crd.get("spec")
        if isinstance(spec, dict) and not converts:
            spec.pop("conversion", None)
        crd.pop("status", None)
        version = str(crd.get("apiVersion", "")).rpartition("/")[2]
        path = f"{_CRDS}/{version}/{_CRD_PLURAL}"

        async def send(changed: Object) -> EmbeddedReply:
            return await self._api.ask("POST", path, changed, query={"dryRun": "All"})

        reply = await self._api.ask("POST", path, crd)
        refused = await _refusals(document, reply, crd, send) if reply.refused else []
        self._installed[document.file, document.line] = refused
        return refused

    async def judge(self, document: Document) -> ValidatedObject:
        obj = document.value
        if not isinstance(obj, dict) or not obj.get("kind") or not obj.get("apiVersion"):
            text = "not a Kubernetes object: it has no apiVersion and kind"
            return _judged(document, [_finding(document, ValidationLevel.ERROR, text)])
        gone = REMOVED.get((str(obj["apiVersion"]), str(obj["kind"])))
        if gone is not None:
            text = gone.advice(str(obj["apiVersion"]), str(obj["kind"]))
            return _judged(document, [_finding(document, ValidationLevel.ERROR, text, _VERSION)])
        if is_crd(obj):
            refused = self._installed.get((document.file, document.line))
            if refused is None:
                refused = await self.install(document)
            return _judged(document, refused)
        try:
            group, version = parse_group_version(str(obj["apiVersion"]))
        except ValueError as error:
            where = _finding(document, ValidationLevel.ERROR, str(error), "apiVersion")
            return _judged(document, [where])
        kind = self._api.kind(group, str(obj["kind"]))
        if kind is None:
            text = f"no CRD was given for {obj['apiVersion']} {obj['kind']}, and it is not built in"
            return _judged(document, [_finding(document, ValidationLevel.UNKNOWN, text)])
        if version not in kind.versions:
            return _judged(document, [_not_served(document, kind)])
        return _judged(document, await self._dry_run(document, kind, version))

    async def _dry_run(
        self, document: Document, kind: ServedKind, version: str
    ) -> list[ValidationFinding]:
        obj = document.value
        found = [
            _finding(document, ValidationLevel.ERROR, f'unknown field "{path}"', path)
            for path in kind.unknown_fields(obj, version)
        ]
        found += [_finding(document, ValidationLevel.ERROR, text) for text in document.repeated]
        old = self._old.get(identity(obj))
        reply = await (
            self._create(obj, kind, version)
            if old is None
            else self._update(obj, old, kind, version)
        )
        if reply.refused:
            found += await _refusals(
                document, reply, obj, lambda changed: self._create(changed, kind, version)
            )
        return found + [
            _finding(document, ValidationLevel.WARNING, text) for text in reply.warnings
        ]

    async def _create(self, obj: Object, kind: ServedKind, version: str) -> EmbeddedReply:
        path = kind.path(version, _namespace_of(obj, kind))
        query = {"dryRun": "All", "fieldValidation": "Ignore"}
        return await self._api.ask("POST", path, obj, query=query)

    async def _update(
        self, obj: Object, old: Object, kind: ServedKind, version: str
    ) -> EmbeddedReply:
        """Validate as an update of the old object, so that unchanged invalid fields are
        tolerated.
        """
        namespace = _namespace_of(obj, kind)
        name = str(obj["metadata"].get("name", ""))
        stored: Object = copy_json(old)
        stored["metadata"] = {"uid": "old", **stored["metadata"], "name": name}
        if namespace:
            stored["metadata"]["namespace"] = namespace
        await self._api.place(kind, namespace, name, stored)
        new: Object = copy_json(obj)
        for name_of_server in ("uid", "resourceVersion"):
            new["metadata"].pop(name_of_server, None)
        path = kind.path(version, namespace, name)
        current = await self._api.ask("GET", path)
        if current.refused:
            return current
        new["metadata"]["resourceVersion"] = current.document["metadata"]["resourceVersion"]
        query = {"dryRun": "All", "fieldValidation": "Ignore"}
        return await self._api.ask("PUT", path, new, query=query)


def _name(obj: Object) -> str:
    metadata = obj.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def _namespace_of(obj: Object, kind: ServedKind) -> str:
    if not kind.namespaced:
        return ""
    metadata = obj.get("metadata")
    given = metadata.get("namespace") if isinstance(metadata, dict) else None
    return given if isinstance(given, str) and given and "/" not in given else _NAMESPACE


async def _refusals(
    document: Document, reply: EmbeddedReply, obj: Object, send: Send
) -> list[ValidationFinding]:
    """Return what the server refused. ``send`` sends another object in place of ``obj``, to find a
    value that cannot be decoded."""
    status = reply.document
    details = status.get("details") or {}
    causes = [cause for cause in details.get("causes") or () if cause.get("message")]
    if not causes:
        told = _finding(document, ValidationLevel.ERROR, str(status.get("message", "refused")))
        if reply.status != _BAD_REQUEST:
            return [told]

        async def still_fails(changed: Object) -> bool:
            again = await send(changed)
            return again.status == reply.status and same_json(again.document, status)

        pointer = await fault_pointer(obj, still_fails)
        return [replace(told, line=document.find(pointer)[0])]
    return [
        _finding(
            document, ValidationLevel.ERROR, str(cause["message"]), str(cause.get("field") or "")
        )
        for cause in causes
    ]


def _not_served(document: Document, kind: ServedKind) -> ValidationFinding:
    served = ", ".join(kind.versions) or "nothing"
    text = f"{document.value['apiVersion']} is not served: {kind.name} is served as {served}"
    return _finding(document, ValidationLevel.ERROR, text, "apiVersion")


def _finding(
    document: Document, level: ValidationLevel, message: str, field: str = ""
) -> ValidationFinding:
    line = document.find(pointer_of(field, document.value))[0]
    return ValidationFinding(level, message, document.file, line, subject(document.value), field)


def _judged(document: Document, findings: list[ValidationFinding]) -> ValidatedObject:
    return ValidatedObject(subject(document.value), document.file, document.line, findings)


def subject(obj: Any) -> str:
    """Return the name of the object for findings."""
    if not isinstance(obj, dict) or not obj.get("kind"):
        return ""
    metadata = obj.get("metadata") if isinstance(obj.get("metadata"), dict) else {}
    name = (metadata or {}).get("name") or (metadata or {}).get("generateName") or ""
    namespace = (metadata or {}).get("namespace")
    return f"{obj['kind']} {namespace}/{name}" if namespace else f"{obj['kind']} {name}".rstrip()
