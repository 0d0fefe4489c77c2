"""A converter of the SDK for widgets, as an author would write it."""

from __future__ import annotations

from typing import Any

from instar.sdk import ConversionError, Converter

GROUP = "inprocess.example.com"
converter = Converter("Widget", group=GROUP)
not_a_converter = "text"


@converter.convert("v1", "v2")
def to_v2(obj: dict[str, Any]) -> dict[str, Any]:
    spec = obj["spec"]
    if spec.get("host") == "unlucky":
        raise ConversionError("no widget may be called unlucky")
    spec["hostPort"] = f"{spec.pop('host')}:{spec.pop('port')}"
    return obj


@converter.convert("v2", "v1")
def to_v1(obj: dict[str, Any]) -> dict[str, Any]:
    host, _, port = obj["spec"].pop("hostPort").rpartition(":")
    obj["spec"] |= {"host": host, "port": int(port)}
    return obj
