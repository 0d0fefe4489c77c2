"""A CRD as somebody wrote it, of either version → what the rest of the code works with.

The one way there, for files, clusters and stored objects: decode as a server does, fill in the
defaults of the version it was written in, bring it to v1. Judges nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from instar.base.json_values import Object, copy_json
from instar.kube.api.crd import GROUP, Crd, read_crd
from instar.kube.api.crd_codec import CrdDecodeError, decode, from_internal, to_internal
from instar.kube.crds.defaults import with_defaults

VERSIONS = ("v1", "v1beta1")


class CrdDocument(NamedTuple):
    given: Object
    """As it was written and as a server decodes it: without what it does not know."""
    raw: Object
    """The v1 form with defaults."""
    crd: Crd
    unknown: tuple[str, ...]
    """Paths a server drops when it decodes the CRD."""


def read_definition(given: Mapping[str, Any]) -> CrdDocument:
    """``given`` is not changed. Raises ``CrdDecodeError`` where a server could not read it."""
    version = str(given.get("apiVersion", "")).removeprefix(f"{GROUP}/")
    if version not in VERSIONS:
        raise CrdDecodeError(f"apiVersion {given.get('apiVersion')!r} is no version of a CRD")
    decoded = decode(dict(given), version)
    raw = as_v1(with_defaults(copy_json(decoded.obj)))
    return CrdDocument(decoded.obj, raw, read_crd(raw), tuple(decoded.unknown))


def as_v1(obj: Object) -> Object:
    """A CRD with its defaults in v1 shape, whichever version it is written in."""
    return from_internal(to_internal(obj), "v1")
