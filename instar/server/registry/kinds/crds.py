"""Strategy of CustomResourceDefinitions: plugs the rules of ``kube/crds`` into the common verbs.

Created by ``server/lifecycle/composition.py``. CRDs are stored as v1; a read at v1beta1 converts
the same object.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from instar.base.errors import Undecodable, forbidden, invalid
from instar.base.field_errors import FieldError
from instar.base.json_values import Object, same_json
from instar.kube.api.crd import GROUP, KIND, PLURAL
from instar.kube.api.crd_codec import from_internal, to_internal
from instar.kube.api.crd_decode import CrdDecodeError, decode
from instar.kube.api.names import GroupKind
from instar.kube.api.patch_types import OF_BUILTIN
from instar.kube.crds.defaults import with_defaults
from instar.kube.crds.format_warnings import format_warnings
from instar.kube.crds.strategy import (
    mark_deleting,
    prepare_for_create,
    prepare_for_update,
    prepare_status_update,
)
from instar.kube.crds.validation.crd import validate_create
from instar.kube.crds.validation.schema import RuleChecker
from instar.kube.crds.validation.schema_size import schema_size_errors
from instar.kube.crds.validation.update import validate_status_update, validate_update
from instar.kube.schema.metadata.object_meta import MetaError, coerce_metadata_lenient
from instar.kube.schema.pipeline import Warn, decode_metadata
from instar.server.registry.resources.strategy import Strategy

if TYPE_CHECKING:
    from instar.server.registry.resources.serving import VersionServing
    from instar.server.registry.stored.entry import CacheEntry, InMemoryEntry

ReviewChange = Callable[[Object, Object], list[str]]
"""(old CRD, new CRD), both v1 → a text for each breaking change."""
_TOLD = 20


class CrdConverter:
    """Converts v1 ↔ v1beta1 field by field, without loss."""

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        version = api_version.rpartition("/")[2]
        return [from_internal(to_internal(obj), version) for obj in objects]


class _PreparedForms(NamedTuple):
    """The internal forms of the write that was prepared last."""

    obj: Object
    internal: Object
    old: Object | None = None
    past: Object | None = None


class CrdStrategy(Strategy):
    reshapes = True
    storage_preconditions = True
    scheme = "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55"
    keeps_nulls = False
    piecewise = False
    patch_types = OF_BUILTIN

    def __init__(
        self,
        check_rules: RuleChecker | None,
        *,
        review: ReviewChange | None = None,
        deny: bool = False,
        converted_here: Collection[str] = (),
        after_write: Callable[[str], Awaitable[None]] | None = None,
        store_new: Callable[[InMemoryEntry, Object], Awaitable[CacheEntry]] | None = None,
    ) -> None:
        """``converted_here``: CRDs this process has a converter for, by name or ``Kind.group``.
        The last two are how the CRD controller takes part in a write.
        """
        self._check_rules = check_rules
        self._review = review
        self._deny = deny
        self._converted_here = converted_here
        self._known: _PreparedForms | None = None
        self.after_write = after_write
        self.store_new = store_new

    def decode(self, obj: Object, version: VersionServing) -> list[str]:
        self.refuse_other_kinds(obj, version)
        try:
            unknown_meta = decode_metadata(obj, within=KIND)
            decoded = decode(obj, version.name)
        except (CrdDecodeError, MetaError) as error:
            raise Undecodable(
                f'{KIND} in version "{version.name}" cannot be handled as a {KIND}: {error}',
                str(error),
            ) from error
        replacement = with_defaults(decoded.obj)
        obj.clear()
        obj.update(replacement)
        return [*unknown_meta, *decoded.unknown]

    def from_storage(self, obj: Object, version: VersionServing) -> None:
        obj["metadata"] = coerce_metadata_lenient(obj.get("metadata"))
        replacement = with_defaults(decode(obj, version.name).obj)
        obj.clear()
        obj.update(replacement)

    def after_conversion(self, obj: Object, version: VersionServing) -> None:
        return

    def default(self, obj: Object, version: VersionServing) -> None:
        return

    def prepare_create(self, obj: Object, version: VersionServing) -> None:
        given = to_internal(obj)
        _refuse_large(obj, schema_size_errors(given["spec"]))
        internal = prepare_for_create(given)
        _replace(obj, internal, version.name)
        self._known = _PreparedForms(obj, internal)

    def prepare_update(self, new: Object, old: Object, version: VersionServing) -> None:
        past, given = to_internal(old), to_internal(new)
        _refuse_large(new, schema_size_errors(given["spec"], past["spec"]))
        fresh = prepare_for_update(given, past)
        _replace(new, fresh, version.name)
        self._known = _PreparedForms(new, fresh, old, past)

    def prepare_status(self, new: Object, old: Object, version: VersionServing) -> None:
        past = to_internal(old)
        fresh = prepare_status_update(to_internal(new), past)
        _replace(new, fresh, version.name)
        self._known = _PreparedForms(new, fresh, old, past)

    def _internal(self, obj: Object) -> Object:
        """Return the internal form, reusing that of the write just prepared."""
        known = self._known
        if known is not None and known.obj is obj:
            return known.internal
        if known is not None and known.old is obj and known.past is not None:
            return known.past
        return to_internal(obj)

    def check_create(self, obj: Object, version: VersionServing, warn: Warn) -> list[FieldError]:
        internal = self._internal(obj)
        found = self.metadata_errors(obj, version)
        found += validate_create(internal, version=version.name, check_rules=self._check_rules)
        if not found:
            for text in format_warnings(internal, None):
                warn(text)
            self._warn_unused_converter(internal, warn)
        return found

    def check_update(
        self, new: Object, old: Object, version: VersionServing, subresource: str, warn: Warn
    ) -> list[FieldError]:
        fresh, past = self._internal(new), self._internal(old)
        found = self.metadata_update_errors(new, old, version)
        if subresource == "status":
            return found + validate_status_update(fresh, past)
        found += validate_update(fresh, past, version=version.name, check_rules=self._check_rules)
        if not found:
            for text in format_warnings(fresh, past):
                warn(text)
            self._warn_unused_converter(fresh, warn)
            self._review_change(fresh, past, warn)
        return found

    def _warn_unused_converter(self, crd: Object, warn: Warn) -> None:
        """Warn about a registered converter that strategy None never calls, which loses data."""
        strategy = (crd["spec"].get("conversion") or {}).get("strategy")
        name, kind = crd["metadata"]["name"], crd["spec"]["names"]["kind"]
        keys = {name, str(GroupKind(crd["spec"]["group"], kind))}
        if strategy != "Webhook" and not keys.isdisjoint(self._converted_here):
            warn(
                "this server has a converter for this CRD (--converter), which is asked only if "
                "spec.conversion.strategy is Webhook"
            )

    def _review_change(self, fresh: Object, past: Object, warn: Warn) -> None:
        """Warn about, or reject, a change that would break clients or stored objects."""
        if self._review is None or same_json(fresh["spec"], past["spec"]):
            return
        breaks = self._review(from_internal(past, "v1"), from_internal(fresh, "v1"))
        if len(breaks) > _TOLD:
            breaks = [*breaks[:_TOLD], f"and {len(breaks) - _TOLD} more: see instar review"]
        if breaks and self._deny:
            raise forbidden(
                GROUP,
                PLURAL,
                past["metadata"].get("name", ""),
                "the change breaks clients or stored objects (instar serve --review=deny): "
                + "; ".join(breaks),
            )
        for text in breaks:
            warn(text)

    def mark_deleting(self, stored: Object, now: str) -> bool:
        """Add the finalizer that keeps a deleted CRD until its objects are deleted."""
        metadata = stored["metadata"]
        if "deletionTimestamp" in metadata:
            metadata.setdefault("deletionGracePeriodSeconds", 0)
            return bool(metadata.get("finalizers"))
        marked = mark_deleting(stored, now)
        stored.clear()
        stored.update(marked)
        return True


def _replace(obj: Object, internal: Object, version: str) -> None:
    replacement = from_internal(internal, version)
    obj.clear()
    obj.update(replacement)


def _refuse_large(obj: Object, found: list[FieldError]) -> None:
    if found:
        raise invalid(GROUP, KIND, obj["metadata"].get("name", ""), found)
