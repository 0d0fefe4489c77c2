"""CRD protection plugin (``--protect-crds``): rejects deleting a CRD that has objects.

The admission chain (``server/lifecycle/admission_setup.py``) calls it for each write. The plugin is
off by default, and upstream does not have it. An annotation on the CRD allows the deletion.
"""

from __future__ import annotations

from instar.base.errors import forbidden
from instar.kube.api.crd import GROUP, PLURAL, read_crd
from instar.server.registry.resources.admission import Operation, PluginPhases, Verb
from instar.server.registry.resources.serving import Serving
from instar.server.registry.stored.backend import Backend
from instar.wire.storage.keys import collection_prefix

ALLOWS = "instar.dev/allow-deletion"
"""Annotation of a CRD that may be deleted while it has objects."""


class CrdProtection:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def interest(self, serving: Serving, verb: Verb) -> PluginPhases:
        is_crd = (serving.group, serving.plural) == (GROUP, PLURAL)
        return PluginPhases.ADMIT if is_crd else PluginPhases.NONE

    def admit(self, operation: Operation) -> None:
        if operation.verb is not Verb.DELETE or operation.old is None:
            return
        crd = read_crd(operation.old)
        annotations = (operation.old.get("metadata") or {}).get("annotations") or {}
        if annotations.get(ALLOWS) == "true":
            return
        plural = crd.stored_plural
        number = len(self._backend.collection(collection_prefix(crd.group, plural)).entries)
        if number:
            objects = f"{number} object" + "s" * (number != 1)
            raise forbidden(
                GROUP,
                PLURAL,
                crd.name,
                f"{objects} would be deleted with it; delete them first, or annotate the CRD with "
                f"{ALLOWS}=true",
            )

    def validate(self, operation: Operation) -> None:
        return
