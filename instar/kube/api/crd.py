"""``Crd``: a CustomResourceDefinition as frozen values, read by nearly every part of the server.

``read_crd`` parses the ``apiextensions.k8s.io/v1`` form (``crd_codec.py`` converts v1beta1 to it).
``read_crd`` does not validate: a ``Crd`` may be invalid (``kube/crds/validation`` has the rules).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

from instar.base.fast_dataclass import dataclass
from instar.kube.api.names import GroupVersionKind, by_priority

GROUP = "apiextensions.k8s.io"
PLURAL = "customresourcedefinitions"
KIND = "CustomResourceDefinition"
CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


def is_crd(value: Any) -> bool:
    """Return whether a document's kind is CustomResourceDefinition, in any version."""
    return (
        isinstance(value, dict)
        and value.get("kind") == KIND
        and str(value.get("apiVersion", "")).startswith(f"{GROUP}/")
    )


@dataclass(frozen=True, slots=True)
class CrdNames:
    plural: str = ""
    singular: str = ""
    kind: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A printer column; ``type`` is one of boolean, date, integer, number, string."""

    name: str
    type: str
    json_path: str
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Paths of the subresource scale of a CRD version."""

    spec_replicas: str
    status_replicas: str
    label_selector: str = ""
    selector_is: str = "text"
    """Type of the value at that path: ``text``, or an object for ``labels`` or a whole
    ``selector``."""


class Selectable(NamedTuple):
    """A field that field selectors support."""

    path: tuple[str, ...]
    unset: str = ""
    instead: tuple[str, ...] = ()
    """Fallback path for objects that have no value at ``path``."""


class CrdSubresource(NamedTuple):
    """A subresource of an object, with its verbs and kind."""

    name: str
    verbs: tuple[str, ...] = ("get", "patch", "update")
    kind: GroupVersionKind | None = None
    """The kind that is read and written there, where it is not the object's own."""


STATUS = CrdSubresource("status")
SCALE = CrdSubresource("scale", kind=GroupVersionKind("autoscaling", "v1", "Scale"))


@dataclass(frozen=True, slots=True, eq=False)
class CrdVersion:
    """A version of a CRD."""

    name: str
    served: bool
    storage: bool
    deprecated: bool = False
    deprecation_warning: str | None = None
    schema: Mapping[str, Any] | None = None
    """The raw ``openAPIV3Schema``."""
    has_status: bool = False
    scale: ScalePaths | None = None
    columns: tuple[PrinterColumn, ...] = ()
    selectable_fields: tuple[str, ...] = ()
    """JSON paths with their leading dot."""
    further_selectable: Mapping[str, Selectable] = field(default_factory=dict)
    """Selectable fields of built-in kinds that are not a plain path or have a value when unset."""
    further: tuple[CrdSubresource, ...] = ()
    """Subresources of a built-in kind besides status and scale."""

    def subresources(self) -> tuple[CrdSubresource, ...]:
        status = (STATUS,) if self.has_status else ()
        scale = () if self.scale is None else (SCALE,)
        return (*status, *scale, *self.further)


@dataclass(frozen=True, slots=True)
class ServiceReference:
    """The Service of a webhook."""

    namespace: str
    name: str
    path: str = ""
    port: int = 443


@dataclass(frozen=True, slots=True)
class WebhookClient:
    """Exactly one of ``url`` and ``service``; ``ca_bundle`` is base64 as written."""

    url: str | None
    service: ServiceReference | None
    ca_bundle: str = ""


@dataclass(frozen=True, slots=True)
class ConversionSpec:
    """``spec.conversion`` of a CRD."""

    strategy: str = "None"
    client: WebhookClient | None = None
    review_versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Crd:
    """A CustomResourceDefinition as the server uses it, decoded and without raw schemas."""

    name: str
    uid: str
    generation: int
    group: str
    namespaced: bool
    names: CrdNames
    accepted: CrdNames
    versions: tuple[CrdVersion, ...]
    conversion: ConversionSpec
    preserve_unknown: bool
    stored_versions: tuple[str, ...]
    conditions: Mapping[str, Mapping[str, Any]]
    """Conditions by type; the last one wins where a client wrote duplicates."""
    deleting: bool

    def version(self, name: str) -> CrdVersion | None:
        return next((version for version in self.versions if version.name == name), None)

    def served(self) -> list[str]:
        """Return the names of served versions, highest priority first."""
        return by_priority(version.name for version in self.versions if version.served)

    def storage_version(self) -> str:
        return next((version.name for version in self.versions if version.storage), "")

    @property
    def stored_plural(self) -> str:
        """The accepted plural: the only accepted name that affects how objects are stored and
        served."""
        return self.accepted.plural or self.names.plural

    def is_true(self, condition: str) -> bool:
        return self.conditions.get(condition, {}).get("status") == "True"

    def without_spec_changes(self, obj: Mapping[str, Any]) -> Crd:
        """Return the CRD with new metadata and status but this spec; ``obj`` need not have a
        spec."""
        return replace(self, **_outside_spec(obj))


def read_crd(obj: Mapping[str, Any]) -> Crd:
    """Return a ``Crd`` from its v1 JSON; missing parts become their zero values."""
    spec = obj.get("spec") or {}
    return Crd(
        group=spec.get("group", ""),
        namespaced=spec.get("scope") == "Namespaced",
        names=read_names(spec.get("names") or {}),
        versions=tuple(_version(item) for item in spec.get("versions") or ()),
        conversion=_conversion(spec.get("conversion") or {}),
        preserve_unknown=bool(spec.get("preserveUnknownFields")),
        **_outside_spec(obj),
    )


def _outside_spec(obj: Mapping[str, Any]) -> dict[str, Any]:
    metadata, status = obj.get("metadata") or {}, obj.get("status") or {}
    conditions = status.get("conditions") or ()
    return {
        "name": metadata.get("name", ""),
        "uid": metadata.get("uid", ""),
        "generation": metadata.get("generation", 0),
        "accepted": read_names(status.get("acceptedNames") or {}),
        "stored_versions": tuple(status.get("storedVersions") or ()),
        "conditions": {item.get("type", ""): item for item in conditions},
        "deleting": bool(metadata.get("deletionTimestamp")),
    }


def read_names(raw: Mapping[str, Any]) -> CrdNames:
    """Return the names of a spec or a status."""
    return CrdNames(
        plural=raw.get("plural", ""),
        singular=raw.get("singular", ""),
        kind=raw.get("kind", ""),
        list_kind=raw.get("listKind", ""),
        short_names=tuple(raw.get("shortNames") or ()),
        categories=tuple(raw.get("categories") or ()),
    )


def _version(raw: Mapping[str, Any]) -> CrdVersion:
    subresources = raw.get("subresources") or {}
    return CrdVersion(
        name=raw.get("name", ""),
        served=bool(raw.get("served")),
        storage=bool(raw.get("storage")),
        deprecated=bool(raw.get("deprecated")),
        deprecation_warning=raw.get("deprecationWarning"),
        schema=(raw.get("schema") or {}).get("openAPIV3Schema"),
        has_status=subresources.get("status") is not None,
        scale=_scale(subresources.get("scale")),
        columns=_columns(raw.get("additionalPrinterColumns") or ()),
        selectable_fields=tuple(item["jsonPath"] for item in raw.get("selectableFields") or ()),
    )


def _scale(raw: Mapping[str, Any] | None) -> ScalePaths | None:
    if raw is None:
        return None
    return ScalePaths(
        spec_replicas=raw.get("specReplicasPath", ""),
        status_replicas=raw.get("statusReplicasPath", ""),
        label_selector=raw.get("labelSelectorPath") or "",
    )


def _columns(raw: Sequence[Mapping[str, Any]]) -> tuple[PrinterColumn, ...]:
    return tuple(
        PrinterColumn(
            name=item.get("name", ""),
            type=item.get("type", ""),
            json_path=item.get("jsonPath", ""),
            format=item.get("format", ""),
            description=item.get("description", ""),
            priority=item.get("priority", 0),
        )
        for item in raw
    )


def _conversion(raw: Mapping[str, Any]) -> ConversionSpec:
    webhook = raw.get("webhook") or {}
    client = webhook.get("clientConfig")
    return ConversionSpec(
        strategy=raw.get("strategy", "None"),
        client=None if client is None else _client(client),
        review_versions=tuple(webhook.get("conversionReviewVersions") or ()),
    )


def _client(raw: Mapping[str, Any]) -> WebhookClient:
    service = raw.get("service")
    return WebhookClient(
        url=raw.get("url"),
        service=None
        if service is None
        else ServiceReference(
            namespace=service.get("namespace", ""),
            name=service.get("name", ""),
            path=service.get("path") or "",
            port=service.get("port", 443),
        ),
        ca_bundle=raw.get("caBundle") or "",
    )
