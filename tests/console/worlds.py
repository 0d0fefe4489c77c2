"""CRDs and objects that the console's pages are about."""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Object
from tests.support.crds import crd, fields, version
from tests.support.server import LiveServer

TEXT: Object = {"type": "string"}


def widgets(group: str, **spec: Any) -> Object:
    """v1beta1 has ``size``, v1 (stored) has ``width``."""
    old = fields(spec=fields(size={"type": "integer"}, legacy=TEXT))
    new = fields(spec=fields(width={"type": "integer"}, legacy=TEXT))
    return crd(
        version("v1beta1", old, deprecated=True),
        version("v1", new, storage=True),
        group=group,
        plural="widgets",
        kind="Widget",
        **spec,
    )


def widget(group: str, name: str, *, at: str = "v1", **spec: Any) -> Object:
    return {
        "apiVersion": f"{group}/{at}",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def renaming(obj: Object, api_version: str) -> Object:
    """``size`` ↔ ``width``."""
    if "spec" not in obj:
        return {**obj, "apiVersion": api_version}
    spec = dict(obj["spec"])
    old, new = ("width", "size") if api_version.endswith("v1beta1") else ("size", "width")
    if old in spec:
        spec[new] = spec.pop(old)
    return {**obj, "apiVersion": api_version, "spec": spec}


def forgetting(obj: Object, api_version: str) -> Object:
    """As above, and ``legacy`` is lost on the way to v1."""
    made = renaming(obj, api_version)
    if api_version.endswith("/v1"):
        made.get("spec", {}).pop("legacy", None)
    return made


def store(server: LiveServer, obj: Object) -> Object:
    group, at = obj["apiVersion"].split("/")
    path = f"/apis/{group}/{at}/namespaces/default/widgets"
    answer = server.request("POST", path, obj)
    assert answer.status == 201, answer.text
    made: Object = answer.json
    return made
