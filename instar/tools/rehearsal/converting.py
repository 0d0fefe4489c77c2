"""Chooses the converter that a rehearsal uses for a CRD: none, one in this process, a webhook, or
unknown.

``batch.py`` and ``sandbox.py`` use it. A captured CRD names the webhook of the real cluster. The
sandbox never calls that webhook, because it may belong to the old release, and a rehearsal must not
send requests to a production webhook.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object, copy_json
from instar.tools.sdk.loading import load
from instar.wire.conversion.in_process import ConvertFunction, registered_for

_UNUSED_URL = "https://127.0.0.1:1/no-webhook-was-given"
"""URL at which nothing listens, for a CRD whose webhook was not given."""


class ConversionMode(StrEnum):
    NONE = "none"
    """Strategy None: only apiVersion changes."""
    MODULE = "module"
    URL = "url"
    ABSENT = "absent"
    """The CRD names a webhook, and the rehearsal was given none."""


class NotGiven(Exception):
    """No converter was given to the rehearsal."""


@dataclass(frozen=True, slots=True)
class Converting:
    """Converters from the command line; can be sent to another process."""

    modules: Mapping[str, str]
    """By CRD name or ``Kind.group``: ``package.module:converter`` or a ``conversion.yaml``."""
    urls: Mapping[str, str]
    """Webhook URLs by CRD name; ``""`` is for every other CRD."""
    ca: bytes = b""

    def of(self, *crds: Object) -> ConversionMode:
        """Return the mode for all states that a CRD has in the rehearsal."""
        if all(_strategy(crd) != "Webhook" for crd in crds):
            return ConversionMode.NONE
        if self._module(crds[0]) is not None:
            return ConversionMode.MODULE
        return ConversionMode.URL if self._url(_name(crds[0])) else ConversionMode.ABSENT

    def functions(self, crd: Object) -> dict[str, ConvertFunction]:
        """Return the in-process functions for a server with the CRD; a URL is called by the
        server.
        """
        name, module = _name(crd), self._module(crd)
        if module is not None:
            return {name: load(module).convert_owned}
        return {} if self._url(name) else {name: _not_given}

    def with_rehearsal_webhook(self, crd: Object) -> Object:
        """Return the CRD with the rehearsal's webhook in place of its own."""
        if _strategy(crd) != "Webhook":
            return crd
        fitted: Object = copy_json(crd)
        url = self._url(_name(crd)) or _UNUSED_URL
        client: Object = {"url": url}
        if self.ca:
            client["caBundle"] = base64.b64encode(self.ca).decode()
        before = fitted["spec"]["conversion"].get("webhook") or {}
        fitted["spec"]["conversion"]["webhook"] = {
            "conversionReviewVersions": before.get("conversionReviewVersions") or ["v1"],
            "clientConfig": client,
        }
        return fitted

    def _module(self, crd: Object) -> str | None:
        return registered_for(self.modules, _name(crd), str(crd["spec"]["names"]["kind"]))

    def _url(self, name: str) -> str:
        return self.urls.get(name) or self.urls.get("", "")


def _name(crd: Object) -> str:
    return str(crd["metadata"]["name"])


def _strategy(crd: Object) -> str:
    return str((crd["spec"].get("conversion") or {}).get("strategy") or "None")


def _not_given(objects: list[Object], api_version: str) -> Sequence[Any]:
    raise NotGiven("the rehearsal was given no converter and no webhook for this CRD")
