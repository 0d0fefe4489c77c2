"""Reads a CRD document of v1 or v1beta1 into a ``Crd``: decode, default, convert to v1.

Used by all tools and the server's composition for CRDs of files, clusters and snapshots. Reading
does not validate the CRD.
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
    """A CRD as it was read: the document, its v1 form and the ``Crd``."""

    given: Object
    """The document as decoded in its own version, without unknown fields."""
    raw: Object
    """The v1 form with defaults."""
    crd: Crd
    unknown: tuple[str, ...]
    """Paths that the decoder dropped."""


def read_definition(given: Mapping[str, Any]) -> CrdDocument:
    """Read a document, which is not changed. Raises ``CrdDecodeError``."""
    version = str(given.get("apiVersion", "")).removeprefix(f"{GROUP}/")
    if version not in VERSIONS:
        raise CrdDecodeError(f"apiVersion {given.get('apiVersion')!r} is no version of a CRD")
    decoded = decode(dict(given), version)
    raw = as_v1(with_defaults(copy_json(decoded.obj)))
    return CrdDocument(decoded.obj, raw, read_crd(raw), tuple(decoded.unknown))


def as_v1(obj: Object) -> Object:
    """Return a CRD with its defaults as v1, whichever version it is written in."""
    return from_internal(to_internal(obj), "v1")
