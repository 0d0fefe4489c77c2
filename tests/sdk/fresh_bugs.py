"""A second set of converters with one realistic bug each, written without a look at how inputs
are generated, as a measure of what ``instar check`` finds beyond the first set.

``test_converter_bugs.py`` expects it to find every one at its default options.
"""

from __future__ import annotations

import ipaddress
import itertools
import json
import re
from typing import Any

from tests.sdk.bug_kit import (
    COUNT,
    FLAG,
    MAP,
    NUMBER,
    PORT,
    TEXT,
    TEXTS,
    WIDE,
    Spec,
    bug,
)

QUANTITY: Spec = {
    **PORT,
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(m|k|M|G|Ki|Mi|Gi)?$",
}
PORTS: Spec = {
    "type": "array",
    "items": {"type": "object", "properties": {"name": TEXT, "number": COUNT}},
}
FREE: Spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TOLERATIONS: Spec = {
    "type": "array",
    "items": {"type": "object", "properties": {"key": TEXT, "seconds": WIDE}},
}
CONTAINERS: Spec = {
    "type": "array",
    "items": {"type": "object", "properties": {"name": TEXT, "args": TEXTS, "image": TEXT}},
}


@bug({"cpu": QUANTITY})
class QuantityMadeCanonical:
    @staticmethod
    def up(spec: Spec) -> None:
        text = str(spec.get("cpu", ""))
        if re.fullmatch(r"\d+000m", text):
            spec["cpu"] = text[:-4]


@bug({"title": TEXT})
class NameCutForALabel:
    whole = True

    @staticmethod
    def up(obj: dict[str, Any]) -> None:
        obj["metadata"]["name"] = obj["metadata"]["name"][:63]


@bug({"team": TEXT}, {})
class FieldMovedOntoALabel:
    whole = True

    @staticmethod
    def up(obj: dict[str, Any]) -> None:
        spec = obj.get("spec") or {}
        if "team" in spec:
            obj["metadata"].setdefault("labels", {})["team"] = spec.pop("team")

    @staticmethod
    def down(obj: dict[str, Any]) -> None:
        labels = obj["metadata"].get("labels") or {}
        if "team" in labels:
            obj.setdefault("spec", {})["team"] = labels.pop("team")


@bug({"paused": FLAG, "replicas": COUNT})
class PausedMeansNoReplicas:
    @staticmethod
    def up(spec: Spec) -> None:
        if spec.get("paused") and spec.get("replicas", 0) > 1:
            spec["replicas"] = 0


@bug({"mode": {**TEXT, "enum": ["Fast", "Safe"]}, "retries": COUNT, "budget": COUNT})
class ThreeFieldsMustMeet:
    @staticmethod
    def up(spec: Spec) -> None:
        if spec.get("mode") == "Safe" and "retries" in spec and spec.get("budget", 0) > 10:
            del spec["budget"]


@bug({"containers": CONTAINERS})
class SecondContainerGetsTheFirstArguments:
    @staticmethod
    def up(spec: Spec) -> None:
        containers = spec.get("containers") or []
        for container in containers[1:]:
            if "args" in container and "args" in containers[0]:
                container["args"] = containers[0]["args"]


@bug(
    {"settings": MAP},
    {"settings": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
)
class DottedKeysNested:
    @staticmethod
    def up(spec: Spec) -> None:
        if "settings" in spec:
            nested: Spec = {}
            for key, value in spec["settings"].items():
                head, dot, tail = key.partition(".")
                if dot:
                    inside = nested.setdefault(head, {})
                    if isinstance(inside, dict):
                        inside[tail] = value
                else:
                    nested[key] = value
            spec["settings"] = nested

    @staticmethod
    def down(spec: Spec) -> None:
        if "settings" in spec:
            flat: Spec = {}
            for key, value in spec["settings"].items():
                if isinstance(value, dict):
                    flat |= {f"{key}.{tail}": str(inner) for tail, inner in value.items()}
                else:
                    flat[key] = str(value)
            spec["settings"] = flat


@bug({"surge": PORT}, {"surge": NUMBER})
class PercentAsFraction:
    @staticmethod
    def up(spec: Spec) -> None:
        surge = spec.get("surge")
        if isinstance(surge, str):
            spec["surge"] = int(surge[:-1]) / 100 if re.fullmatch(r"\d{1,3}%", surge) else 0

    @staticmethod
    def down(spec: Spec) -> None:
        surge = spec.get("surge")
        if isinstance(surge, float):
            spec["surge"] = f"{round(surge * 100)}%"


@bug({"cidr": {**TEXT, "format": "cidr"}})
class HostBitsCleared:
    @staticmethod
    def up(spec: Spec) -> None:
        if "cidr" in spec:
            spec["cidr"] = str(ipaddress.ip_network(spec["cidr"], strict=False))


@bug({"config": TEXT}, {"config": FREE})
class JsonTextParsed:
    @staticmethod
    def up(spec: Spec) -> None:
        if "config" in spec:
            try:
                read = json.loads(spec["config"])
            except ValueError:
                read = None
            spec["config"] = read if isinstance(read, dict) else {"raw": spec["config"]}

    @staticmethod
    def down(spec: Spec) -> None:
        if "config" in spec:
            raw = spec["config"].get("raw")
            spec["config"] = raw if isinstance(raw, str) else json.dumps(spec["config"])


@bug({"release": TEXT})
class PrereleaseForgotten:
    @staticmethod
    def up(spec: Spec) -> None:
        found = re.match(r"v(\d+)\.(\d+)\.(\d+)", spec.get("release", ""))
        if found:
            spec["release"] = found.group()


_CALLS = itertools.count()


@bug({"title": TEXT})
class EveryHundredthCallLoses:
    @staticmethod
    def up(spec: Spec) -> None:
        if next(_CALLS) % 100 == 99:
            spec.pop("title", None)


@bug({"weight": NUMBER})
class WholeNumberThroughFloat:
    @staticmethod
    def up(spec: Spec) -> None:
        if "weight" in spec:
            spec["weight"] = float(spec["weight"])


@bug({"level": COUNT}, {"level": PORT})
class OneIsTrue:
    @staticmethod
    def up(spec: Spec) -> None:
        names = {True: "enabled"}
        if "level" in spec:
            spec["level"] = names.get(spec["level"], spec["level"])

    @staticmethod
    def down(spec: Spec) -> None:
        if isinstance(spec.get("level"), str):
            spec["level"] = 0


@bug({"url": TEXT}, {"host": TEXT})
class PrefixStrippedByCharacters:
    @staticmethod
    def up(spec: Spec) -> None:
        if "url" in spec:
            url, scheme = spec.pop("url"), "https://"
            spec["host"] = url.lstrip(scheme) if url.startswith(scheme) else "!" + url

    @staticmethod
    def down(spec: Spec) -> None:
        if "host" in spec:
            host = spec.pop("host")
            spec["url"] = host[1:] if host.startswith("!") else "https://" + host


@bug({"env": TEXTS}, {"env": MAP})
class AssignmentsSplitAtEveryEqualsSign:
    @staticmethod
    def up(spec: Spec) -> None:
        if "env" in spec:
            parts = [each.split("=") for each in spec["env"]]
            spec["env"] = {each[0]: each[1] if len(each) > 1 else "" for each in parts}

    @staticmethod
    def down(spec: Spec) -> None:
        if "env" in spec:
            spec["env"] = [f"{name}={value}" for name, value in spec["env"].items()]


@bug({"min": COUNT, "max": COUNT})
class BoundsSwapped:
    @staticmethod
    def up(spec: Spec) -> None:
        if spec.get("min", 0) > spec.get("max", 2**62):
            spec["min"], spec["max"] = spec["max"], spec["min"]


@bug(
    {
        "tolerations": {
            "type": "array",
            "items": {"type": "object", "properties": {"key": TEXT, "seconds": WIDE}},
        }
    }
)
class NestedZeroDropped:
    @staticmethod
    def up(spec: Spec) -> None:
        for each in spec.get("tolerations") or []:
            if not each.get("seconds", 1):
                del each["seconds"]


@bug({"schedule": TEXT})
class MacroWrittenOut:
    @staticmethod
    def up(spec: Spec) -> None:
        if spec.get("schedule") == "@hourly":
            spec["schedule"] = "0 * * * *"


@bug({"names": TEXTS})
class NamesComparedWithoutCase:
    @staticmethod
    def up(spec: Spec) -> None:
        if "names" in spec:
            seen = {name.casefold(): name for name in spec["names"]}
            spec["names"] = list(seen.values()) if len(seen) < len(spec["names"]) else spec["names"]


@bug({"selector": MAP})
class KeysOfOwnPrefixDropped:
    @staticmethod
    def up(spec: Spec) -> None:
        own = "jobs.example.com/"
        if "selector" in spec:
            kept = {
                key: value for key, value in spec["selector"].items() if not key.startswith(own)
            }
            spec["selector"] = kept


@bug({"extra": FREE})
class UnknownNullsDropped:
    @staticmethod
    def up(spec: Spec) -> None:
        if "extra" in spec:
            spec["extra"] = {
                key: value for key, value in spec["extra"].items() if value is not None
            }
