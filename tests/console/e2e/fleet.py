"""CRDs and objects as a server that is in use for a while has them."""

from __future__ import annotations

from typing import Any

from instar.base.json_values import Object, copy_json
from tests.support.crds import crd, fields, version
from tests.support.server import LiveServer
from tests.support.webhook import Webhook

GROUP = "shop.example.com"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Colour", "type": "string", "jsonPath": ".spec.colour"},
]
TEXT: Object = {"type": "string"}
OLD = fields(
    spec=fields(size={"type": "integer"}, colour=TEXT, legacy=TEXT),
)
NEW = fields(
    spec={
        **fields(
            size={"type": "integer", "minimum": 0},
            colour={"type": "string", "enum": ["red", "green", "blue"]},
            labelled={"type": "array", "items": TEXT},
        ),
        "required": ["size"],
    },
)


class Fleet:
    orders = f"orders.{GROUP}"
    """v1beta1 (deprecated), v1 (storage); strategy None; some objects lie at v1beta1."""
    routes = f"routes.{GROUP}"
    """v1 and v2 behind a webhook which splits ``address`` into ``host`` and ``port``."""

    @staticmethod
    def convert(obj: Object, api_version: str) -> Object:
        spec = dict(obj.get("spec", {}))
        if api_version.endswith("/v2") and "address" in spec:
            host, _, port = spec.pop("address").partition(":")
            spec |= {"host": host, "port": port}
        elif api_version.endswith("/v1") and "host" in spec:
            # The note of v2 is lost on the way: a law is broken for all to see.
            spec.pop("note", None)
            spec["address"] = f"{spec.pop('host')}:{spec.pop('port', '')}"
        return {**obj, "apiVersion": api_version, **({"spec": spec} if spec else {})}


def orders(storage: str) -> Object:
    columns = {"additionalPrinterColumns": COLUMNS}
    made = crd(
        version("v1alpha1", OLD, served=False, **columns),
        version("v1beta1", OLD, storage=storage == "v1beta1", deprecated=True, **columns),
        version("v1", NEW, storage=storage == "v1", **columns),
        group=GROUP,
        plural="orders",
        kind="Order",
    )
    own: Object = copy_json(made)  # whoever changes theirs leaves others alone
    return own


def order(name: str, at: str = "v1", namespace: str = "default", **spec: Any) -> Object:
    return {
        "apiVersion": f"{GROUP}/{at}",
        "kind": "Order",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "shop"}},
        "spec": spec,
    }


def put(server: LiveServer, plural: str, obj: Object) -> None:
    at = obj["apiVersion"].partition("/")[2]
    namespace = obj["metadata"]["namespace"]
    path = f"/apis/{GROUP}/{at}/namespaces/{namespace}/{plural}"
    answer = server.request("POST", path, obj)
    assert answer.status == 201, answer.text


def fill(server: LiveServer, converter: Webhook) -> Fleet:
    made = server.create_crd(orders("v1beta1"))
    for number in range(20):
        put(server, "orders", order(f"old-{number:03}", "v1beta1", size=number, colour="red"))
    stored = server.request("GET", f"{CRDS}/{made['metadata']['name']}").json
    wanted = {**orders("v1"), "metadata": stored["metadata"]}
    answer = server.request("PUT", f"{CRDS}/{made['metadata']['name']}", wanted)
    assert answer.status == 200, answer.text
    for number in range(40):
        put(server, "orders", order(f"order-{number:03}", size=number, colour="green"))
    address = fields(spec=fields(address=TEXT))
    split = fields(spec=fields(host=TEXT, port=TEXT, note=TEXT))
    server.create_crd(
        crd(
            version("v1", address, storage=True),
            version("v2", split),
            group=GROUP,
            plural="routes",
            kind="Route",
            conversion=converter.conversion(),
        )
    )
    route = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Route",
        "metadata": {"name": "front", "namespace": "default"},
        "spec": {"address": "example.com:443"},
    }
    put(server, "routes", route)
    # Somebody reads it at the other version, so that there is something to count.
    server.request("GET", f"/apis/{GROUP}/v2/namespaces/default/routes/front")
    return Fleet()
