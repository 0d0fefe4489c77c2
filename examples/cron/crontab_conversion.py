"""Cron schedules: one string in v1, five fields in v2.

Serve it:    instar webhook crontab_conversion:crontab --cert tls.crt --key tls.key
Check it:    instar check --crd crd.yaml --converter crontab_conversion:crontab
Use it:      instar convert --converter crontab_conversion:crontab --to v2 manifests/
"""

from __future__ import annotations

from typing import Any

from instar.sdk import ConversionError, Converter

FIELDS = ("min", "hour", "dayOfMonth", "month", "dayOfWeek")

crontab = Converter("CronTab", group="stable.example.com")


@crontab.convert("v1", "v2")
def split_schedule(obj: dict[str, Any]) -> dict[str, Any]:
    # Server-side apply converts parts of objects, so nothing is taken for granted.
    spec = obj.get("spec", {})
    if "cronSpec" in spec:
        parts = spec.pop("cronSpec").split(" ")
        if len(parts) != len(FIELDS):
            raise ConversionError("spec.cronSpec needs five parts")
        spec.update(zip(FIELDS, parts, strict=True))
    return obj


@crontab.convert("v2", "v1")
def join_schedule(obj: dict[str, Any]) -> dict[str, Any]:
    spec = obj.get("spec", {})
    parts = [spec.pop(field) for field in FIELDS if field in spec]
    if len(parts) == len(FIELDS):
        spec["cronSpec"] = " ".join(parts)
    return obj
