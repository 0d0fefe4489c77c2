"""The subject of a check: a CRD's schemas per version, and the converter between them.

``search.py`` and ``laws.py`` work on it; the ``check`` command and the console build it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import orjson

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object, copy_json
from instar.kube.api.crd import Crd, CrdVersion
from instar.kube.schema.compiled import CompiledSchema
from instar.kube.schema.offline_requests import create
from instar.kube.schema.pipeline import SchemaPipeline, pipeline_of
from instar.tools.sdk.errors import ConversionError
from instar.tools.sdk.ruleset import Loss
from instar.wire.conversion import contract


class ConversionRejected(Exception):
    """The converter refused the object, or crashed; the message is the converter's."""


class ContractBroken(Exception):
    """The response breaks the conversion contract, so an API server would reject it."""


class Uncheckable(Exception):
    """The check cannot run: no connection, no schema or no versions."""


class Responder(Protocol):
    """Converts objects, in process or through a URL. Raises ``ConversionError`` if the conversion
    is refused, ``Uncheckable`` if the converter cannot be called.
    """

    def convert(self, objects: Sequence[Object], api_version: str) -> Sequence[Any]: ...


@dataclass(frozen=True, slots=True, eq=False)
class VersionSchema:
    """One version: applies the steps of an API server to its objects, except conversion."""

    name: str
    pipeline: SchemaPipeline
    losses: tuple[Loss, ...] = ()

    @property
    def api_version(self) -> str:
        return self.pipeline.api_version

    @property
    def compiled(self) -> CompiledSchema:
        return self.pipeline.compiled

    def admit(self, obj: Object) -> Object | None:
        """Return the object as the server would store it, or ``None`` if it would be refused."""
        answer = create(self.pipeline, obj)
        return answer.obj if answer.accepted else None

    def prune(self, obj: Object) -> list[str]:
        """Prune and drop nulls in place, as after every conversion; return the pruned paths."""
        return self.pipeline.after_conversion(obj)

    def problems(self, obj: Object) -> list[str]:
        """Return why a client could not write this object back; defaults are applied first."""
        return create(self.pipeline, obj).refusals


@dataclass(frozen=True, slots=True, eq=False)
class CheckCase:
    """A CRD and the converter of its objects."""

    crd: Crd
    versions: Mapping[str, VersionSchema]
    responder: Responder
    hub: str | None = None

    def pairs(self) -> list[tuple[str, str]]:
        """Return the hub and each other version in both directions; all pairs if there is
        no hub.
        """
        names = list(self.versions)
        return [
            (source, target)
            for source in names
            for target in names
            if source != target and (self.hub is None or self.hub in (source, target))
        ]

    def raw(self, objects: Sequence[Object], to: VersionSchema) -> list[Any]:
        """Return the response before the contract is checked.

        The converter gets a copy, so that it cannot change the object it is checked by. A value
        that JSON cannot carry, such as an integer beyond 64 bits, counts as a refusal.
        """
        try:
            answer = list(self.responder.convert(copy_json(objects), to.api_version))
            orjson.dumps(answer)
        except ConversionError as error:
            raise ConversionRejected(str(error)) from None
        except (TypeError, ValueError) as error:
            raise ConversionRejected(f"the answer is not JSON: {error}") from None
        return answer

    def convert_all(self, objects: Sequence[Object], to: VersionSchema) -> list[Object]:
        """Return the objects as an API server takes them from the response, before pruning."""
        answer = self.raw(objects, to)
        try:
            return contract.accept_all(objects, answer, to.api_version)
        except contract.BrokenContract as broken:
            raise ContractBroken(broken.text) from None

    def convert(self, obj: Object, to: VersionSchema) -> Object:
        [result] = self.convert_all([obj], to)
        return result

    def view(self, obj: Object, to: VersionSchema) -> Object:
        """Return the object as a client of ``to`` sees it: converted, then pruned by its schema."""
        seen: Object = copy_json(self.convert(obj, to))
        to.prune(seen)
        return seen


def case_of(
    crd: Crd,
    responder: Responder,
    *,
    hub: str | None = None,
    losses: Sequence[Loss] = (),
    versions: Sequence[str] = (),
    all_pairs: bool = False,
) -> CheckCase:
    """Return the case; ``versions`` limits the check, by default to every version of the CRD.

    Without a ``hub`` the storage version is the middle, because that is how an API server converts:
    from what is stored, to what is asked for. ``all_pairs`` tests every two versions instead.
    """
    chosen = [each for each in crd.versions if not versions or each.name in versions]
    unknown = [name for name in versions if crd.version(name) is None]
    if unknown:
        raise Uncheckable(f"{crd.name} has no version {', '.join(unknown)}")
    if len(chosen) < 2:
        raise Uncheckable(f"{crd.name} has fewer than two versions: nothing to convert")
    if hub is not None and all(each.name != hub for each in chosen):
        raise Uncheckable(f"the converter's hub {hub!r} is not a version of {crd.name}")
    schemas = {each.name: schema_of(crd, each, losses) for each in chosen}
    stored = crd.storage_version()
    middle = hub or (stored if stored in schemas else None)
    return CheckCase(crd, schemas, responder, None if all_pairs else middle)


def schema_of(crd: Crd, version: CrdVersion, losses: Sequence[Loss] = ()) -> VersionSchema:
    return VersionSchema(
        version.name,
        pipeline_of(crd, version),
        tuple(loss for loss in losses if loss.version == version.name),
    )
