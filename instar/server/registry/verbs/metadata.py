"""Metadata that the server owns: clears, sets and restores it in objects that clients send.

The write verbs and ``post_admission.py`` call it; pure functions on plain objects, with upstream's
error texts.
"""

from __future__ import annotations

from collections.abc import Callable

from instar.base.errors import BadRequest, Conflict, Unclassified, conflict
from instar.base.json_values import Object
from instar.kube.api.encoding.json_text import encode_sorted
from instar.server.registry.resources.resource import Target

_MOST_DIGITS = 20
"""Digits of a 64-bit number; a longer text is out of range."""
_DUPLICATE_OWNERS = (
    ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner "
    "references in 1.20+, and may reject such requests as early as 1.24; please fix your "
    "requests; duplicate UID(s) observed: {uids}"
)


def parse_revision(text: str) -> int:
    """Parse a resourceVersion as Go does. Raises ``ValueError`` with Go's error text."""
    digits = text.lstrip("0")
    if not text.isascii() or not text.isdigit():
        raise ValueError(f'strconv.ParseUint: parsing "{text}": invalid syntax')
    if len(digits) > _MOST_DIGITS or int(digits or "0") >= 1 << 64:
        raise ValueError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(digits or "0")


def check_unrevised(metadata: Object) -> None:
    """Refuse a create with a resourceVersion. As upstream, one that is not a number is ignored."""
    given = metadata.get("resourceVersion")
    if not given:
        return
    try:
        revision = parse_revision(given)
    except ValueError:
        return
    if revision:
        raise Unclassified("resourceVersion should not be set on objects to be created")


_OF_THE_SERVER = frozenset(
    (
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "resourceVersion",
        "generation",
        "uid",
        "creationTimestamp",
    )
)


def wipe_for_create(metadata: Object) -> None:
    """Drop the fields that only the server sets."""
    for name in _OF_THE_SERVER & metadata.keys():
        del metadata[name]


def fill_for_create(metadata: Object, *, uid: str, created: str) -> None:
    """Set uid and creationTimestamp, after mutating admission."""
    metadata.pop("generation", None)
    metadata["uid"] = uid
    metadata["creationTimestamp"] = created


def keep_server_fields(new: Object, old: Object) -> None:
    """Restore creation, deletion and generation: an update cannot change them."""
    for name in ("creationTimestamp", "generation"):
        _restore(new, old, name)
    if "deletionTimestamp" in old:
        _restore(new, old, "deletionTimestamp")
        if "deletionGracePeriodSeconds" not in new:
            _restore(new, old, "deletionGracePeriodSeconds")
    new.pop("selfLink", None)


def keep_uid(new: Object, old: Object) -> None:
    """Restore the uid, which an object written directly to the store may lack."""
    _restore(new, old, "uid")


def _restore(new: Object, old: Object, name: str) -> None:
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def dedupe_owners(metadata: Object, warn: Callable[[str], None], *, patched: bool) -> None:
    """Drop duplicate owner references and warn about them."""
    owners = metadata.get("ownerReferences")
    if not owners or len(owners) < 2:
        return
    unique: dict[bytes, Object] = {}
    repeated = [
        owner.get("uid", "")
        for owner in owners
        if unique.setdefault(encode_sorted(owner), owner) is not owner
    ]
    if repeated:
        metadata["ownerReferences"] = list(unique.values())
        when = " after mutating admission happens" if patched else ""
        uids = ", ".join(sorted(set(repeated)))
        warn(_DUPLICATE_OWNERS.format(when=when, uids=uids))


def another_uid(target: Target, wanted: str, actual: str) -> Conflict:
    """Return the 409 of a failed uid precondition, in the words of upstream's storage layer."""
    serving = target.serving
    prefix = serving.prefix
    if serving.builtin and not serving.group:
        prefix = f"{_KEPT_ELSEWHERE.get(serving.plural, serving.plural)}/"
    return conflict(
        serving.group,
        serving.plural,
        target.name,
        f"StorageError: invalid object, Code: 4, Key: /registry/{prefix}{target.suffix}, "
        "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
        f"UID in precondition: {wanted}, UID in object meta: {actual}",
    )


_KEPT_ELSEWHERE = {
    "services": "services/specs",
    "endpoints": "services/endpoints",
    "nodes": "minions",
    "replicationcontrollers": "controllers",
}
"""Storage keys in upstream of core kinds that were renamed; error texts show them."""


def check_names(obj: Object, target: Target) -> None:
    """Refuse a body with another name or namespace than the URL."""
    metadata = obj["metadata"]
    check_namespace(metadata, target)
    name = metadata.get("name") or ""
    if not name:
        raise BadRequest(
            f"the name of the object ({target.name} based on URL) was undeterminable: "
            "name must be provided"
        )
    if name != target.name:
        raise BadRequest(
            f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        )


def check_namespace(metadata: Object, target: Target) -> None:
    """Set the namespace from the URL, or refuse another one."""
    if not target.serving.namespaced:
        metadata.pop("namespace", None)
        return
    given = metadata.get("namespace") or target.namespace
    if given != target.namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata["namespace"] = given
