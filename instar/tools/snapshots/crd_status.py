"""Computes the status that a server would give the CRDs of a captured cluster. Pure.

``loading.py`` calls it. A CRD that a server has accepted is used unchanged. A manifest that no
server has seen is validated as if it were created now.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from instar.base.field_errors import FieldError
from instar.base.json_values import Object
from instar.kube.api.crd_codec import CrdDecodeError, from_internal, to_internal
from instar.kube.crds.lifecycle import status_sequence
from instar.kube.crds.strategy import prepare_for_create
from instar.kube.crds.validation.crd import validate_create
from instar.kube.schema.cel_rules.lazy_engine import check_if_any

_MAX_SHOWN_ERRORS = 3
"""Further errors of a CRD are only counted."""


class InvalidCrd(NamedTuple):
    name: str
    why: str


def with_status(
    crds: Iterable[Object], now: str, refused: Callable[[InvalidCrd], None]
) -> list[Object]:
    """Return each CRD with a status; CRDs that a server would refuse are reported and left out."""
    found: list[Object] = []
    of_group: dict[str, list[Object]] = {}
    for crd in crds:
        name = crd["metadata"]["name"]
        ready = _usable_crd(crd, refused) if _accepted(crd) else _created(crd, refused)
        if ready is None:
            continue
        mates = of_group.setdefault(ready["spec"]["group"], [])
        states = status_sequence(ready, [each for each in mates if _name(each) != name], now)
        if states:
            ready = {**ready, "status": states[-1]}
        mates.append(ready)
        found.append(ready)
    return found


def with_stored(crd: Object, versions: Collection[str]) -> Object:
    """Add to ``storedVersions`` the versions at which objects are stored."""
    known = list(crd["status"].get("storedVersions") or ())
    more = [version for version in sorted(versions) if version not in known]
    return {**crd, "status": {**crd["status"], "storedVersions": [*known, *more]}} if more else crd


def _accepted(crd: Object) -> bool:
    return bool((crd.get("status") or {}).get("conditions"))


def _usable_crd(crd: Object, refused: Callable[[InvalidCrd], None]) -> Object | None:
    """Return the CRD; report one whose name or versions are invalid, and return None: no server has
    served it, so the snapshot was edited.
    """
    spec, name = crd["spec"], _name(crd)
    if name != f"{spec['names'].get('plural')}.{spec.get('group')}" or "/" in name:
        refused(InvalidCrd(name, "its name is not that of its plural and group"))
        return None
    if not any(version.get("storage") for version in spec.get("versions") or ()):
        refused(InvalidCrd(name, "none of its versions is the one for storage"))
        return None
    return crd


def _created(crd: Object, refused: Callable[[InvalidCrd], None]) -> Object | None:
    name = crd["metadata"]["name"]
    try:
        internal = prepare_for_create(to_internal(crd))
        errors = validate_create(internal, check_rules=check_if_any)
    except CrdDecodeError as error:
        refused(InvalidCrd(name, str(error)))
        return None
    if errors:
        refused(InvalidCrd(name, _errors_text(errors)))
        return None
    return from_internal(internal, "v1")


def _errors_text(errors: list[FieldError]) -> str:
    more = f" and {len(errors) - _MAX_SHOWN_ERRORS} more" if len(errors) > _MAX_SHOWN_ERRORS else ""
    return "; ".join(str(error) for error in errors[:_MAX_SHOWN_ERRORS]) + more


def _name(crd: Object) -> str:
    return str(crd["metadata"]["name"])
