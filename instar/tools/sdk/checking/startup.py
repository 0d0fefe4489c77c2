"""Tells whether a controller that serves its own conversion webhook can start. Pure.

``instar check`` warns with it. The controller's caches list objects before its webhook listens. If
the API server must convert one of those objects, controller and API server wait for each other
(controller-runtime issue 1685).
"""

from __future__ import annotations

from instar.base.escaping import shell_word
from instar.kube.api.crd import Crd
from instar.tools.sdk.checking.report import Counterexample, LawResult

LAW = "start-up"
TITLE = "a controller can list while its own webhook is not up yet"


def startup_outcomes(crd: Crd, controller: str) -> list[LawResult]:
    """Return one outcome per version in which objects may be stored; none without webhook
    conversion.

    ``controller`` is the version the controller lists. ``crd`` comes from a cluster: only there it
    is known what is stored.
    """
    if crd.conversion.strategy != "Webhook":
        return []
    stored = dict.fromkeys([*crd.stored_versions, crd.storage_version()])
    return [
        LawResult(LAW, TITLE, name, controller, 1, 0.0, _trouble(crd, name, controller))
        for name in stored
    ]


def _trouble(crd: Crd, stored: str, controller: str) -> Counterexample | None:
    if stored == controller:
        return None
    if stored == crd.storage_version():
        cure = f"let the controller use {stored}, the storage version, or make {controller} that"
    else:
        cure = f"run instar migrate {shell_word(crd.name)} before the controller is rolled out"
    text = (
        f"objects may be stored at {stored}: listing them at {controller} needs the webhook, and a "
        f"controller that serves it itself waits for ever; {cure}; or serve the webhook before the "
        "caches are filled, or in a process of its own"
    )
    return Counterexample(text, [], [], [])
