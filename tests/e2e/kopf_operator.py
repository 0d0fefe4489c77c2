"""An operator as its author would write it: nothing in here knows that the server is not a cluster.

kopf run --standalone --namespace=NAME tests/e2e/kopf_operator.py
"""

from __future__ import annotations

from typing import Any

import kopf

GROUP, VERSION, PLURAL = "kopf.example.com", "v1", "widgets"


@kopf.on.create(GROUP, VERSION, PLURAL)
def created(spec: Any, patch: Any, body: Any, **_: Any) -> dict[str, Any]:
    patch.status["phase"] = "Created"
    patch.status["seen"] = spec["color"]
    kopf.event(body, type="Normal", reason="Painted", message=f"painted {spec['color']}")
    return {"replicas": spec["replicas"]}


@kopf.on.update(GROUP, VERSION, PLURAL, field="spec.color")
def changed(old: Any, new: Any, patch: Any, **_: Any) -> None:
    patch.status["phase"] = "Changed"
    patch.status["seen"] = f"{old}->{new}"


@kopf.on.delete(GROUP, VERSION, PLURAL)
def deleted(name: str, memo: Any, patch: Any, spec: Any, retry: int, **_: Any) -> None:
    """Holds the object once, so that the finalizer is really needed."""
    if retry == 0:
        patch.status["phase"] = "Deleting"
        raise kopf.TemporaryError("not yet", delay=0.1)
