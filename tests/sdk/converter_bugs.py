"""Converters with one realistic bug each, for ``instar check`` to find at its default options.

Every entry is a pair of schemas and a converter between them. What is wrong is said by the name.
They are module attributes, so that a second process can import them.
"""

from __future__ import annotations

import base64
import datetime
import json
import random
import re
import unicodedata
import urllib.parse
from typing import Any

from tests.sdk.bug_kit import (
    COUNT,
    FLAG,
    MAP,
    NUMBER,
    PAIRS,
    PORT,
    TEXT,
    TEXTS,
    TIME,
    WIDE,
    Spec,
    bug,
)


@bug({"size": WIDE})
class IntegerThroughFloat:
    @staticmethod
    def up(spec: Spec) -> None:
        if "size" in spec:
            spec["size"] = int(float(spec["size"]))


@bug({"replicas": COUNT})
class IntegerCutTo32Bits:
    @staticmethod
    def up(spec: Spec) -> None:
        if "replicas" in spec:
            spec["replicas"] = (spec["replicas"] + 2**31) % 2**32 - 2**31


@bug({"ratio": NUMBER}, {"ratio": TEXT})
class FractionWithTwoDigits:
    @staticmethod
    def up(spec: Spec) -> None:
        if "ratio" in spec:
            spec["ratio"] = f"{spec['ratio']:.2f}"

    @staticmethod
    def down(spec: Spec) -> None:
        try:
            spec["ratio"] = float(spec["ratio"])
        except (KeyError, ValueError):
            spec.pop("ratio", None)


@bug({"percent": {"type": "integer", "minimum": 0, "maximum": 100}}, {"share": NUMBER})
class PercentCutByFloat:
    @staticmethod
    def up(spec: Spec) -> None:
        if "percent" in spec:
            spec["share"] = spec.pop("percent") / 100

    @staticmethod
    def down(spec: Spec) -> None:
        if "share" in spec:
            spec["percent"] = max(0, min(100, int(spec.pop("share") * 100)))


@bug({"timeoutSeconds": {**COUNT, "minimum": 0, "maximum": 10**6}}, {"timeoutMinutes": COUNT})
class SecondsAsMinutes:
    @staticmethod
    def up(spec: Spec) -> None:
        if "timeoutSeconds" in spec:
            spec["timeoutMinutes"] = spec.pop("timeoutSeconds") // 60

    @staticmethod
    def down(spec: Spec) -> None:
        if "timeoutMinutes" in spec:
            spec["timeoutSeconds"] = max(0, min(10**6, spec.pop("timeoutMinutes") * 60))


@bug({"description": TEXT})
class LongTextCut:
    @staticmethod
    def up(spec: Spec) -> None:
        if "description" in spec:
            spec["description"] = spec["description"][:256]


@bug({"args": TEXTS})
class LongListCut:
    @staticmethod
    def up(spec: Spec) -> None:
        if "args" in spec:
            spec["args"] = spec["args"][:64]


@bug({"args": TEXTS})
class DuplicatesRemoved:
    @staticmethod
    def up(spec: Spec) -> None:
        if "args" in spec:
            spec["args"] = list(dict.fromkeys(spec["args"]))


@bug({"port": PORT})
class DigitsBecomeNumber:
    @staticmethod
    def up(spec: Spec) -> None:
        if isinstance(spec.get("port"), str) and spec["port"].isascii() and spec["port"].isdigit():
            spec["port"] = int(spec["port"])


@bug({"bucket": TEXT, "folder": TEXT}, {"location": TEXT})
class BucketJoinedBySlash:
    @staticmethod
    def up(spec: Spec) -> None:
        if "bucket" in spec:
            spec["location"] = spec.pop("bucket")
            if "folder" in spec:
                spec["location"] += "/" + spec.pop("folder")
        else:
            spec.pop("folder", None)

    @staticmethod
    def down(spec: Spec) -> None:
        if "location" in spec:
            bucket, slash, folder = spec.pop("location").partition("/")
            spec["bucket"] = bucket
            if slash:
                spec["folder"] = folder


@bug({"image": TEXT}, {"repository": TEXT, "tag": TEXT})
class ImageSplitAtFirstColon:
    @staticmethod
    def up(spec: Spec) -> None:
        if "image" in spec:
            parts = spec.pop("image").split(":")
            spec["repository"] = parts[0]
            if len(parts) > 1:
                spec["tag"] = parts[1]

    @staticmethod
    def down(spec: Spec) -> None:
        if "repository" in spec:
            tag = spec.pop("tag", None)
            spec["image"] = spec.pop("repository") + (f":{tag}" if tag is not None else "")


@bug({"selector": MAP})
class MapKeysLowered:
    @staticmethod
    def up(spec: Spec) -> None:
        if "selector" in spec:
            spec["selector"] = {key.lower(): value for key, value in spec["selector"].items()}


@bug({"command": TEXT})
class SpacesStripped:
    @staticmethod
    def up(spec: Spec) -> None:
        if "command" in spec:
            spec["command"] = spec["command"].strip()


@bug({"note": {**TEXT, "nullable": True}})
class NullDropped:
    @staticmethod
    def up(spec: Spec) -> None:
        if spec.get("note") is None:
            spec.pop("note", None)


@bug({"replicas": {**COUNT, "minimum": 0}}, {"size": {**COUNT, "minimum": 0}})
class ZeroTakenForAbsent:
    @staticmethod
    def up(spec: Spec) -> None:
        replicas = spec.pop("replicas", None)
        if replicas:
            spec["size"] = replicas

    @staticmethod
    def down(spec: Spec) -> None:
        if "size" in spec:
            spec["replicas"] = spec.pop("size")


@bug({"args": TEXTS}, {"arguments": TEXTS})
class EmptyListTakenForAbsent:
    @staticmethod
    def up(spec: Spec) -> None:
        args = spec.pop("args", None)
        if args:
            spec["arguments"] = args

    @staticmethod
    def down(spec: Spec) -> None:
        if "arguments" in spec:
            spec["args"] = spec.pop("arguments")


@bug({"title": TEXT})
class UnicodeIgnored:
    @staticmethod
    def up(spec: Spec) -> None:
        if "title" in spec:
            spec["title"] = spec["title"].encode("latin-1", "ignore").decode("latin-1")


@bug({"title": TEXT})
class UnicodeNormalised:
    @staticmethod
    def up(spec: Spec) -> None:
        if "title" in spec:
            spec["title"] = unicodedata.normalize("NFC", spec["title"])


@bug({"args": TEXTS}, {"args": TEXT})
class ListJoinedByComma:
    @staticmethod
    def up(spec: Spec) -> None:
        if "args" in spec:
            spec["args"] = ",".join(spec["args"])

    @staticmethod
    def down(spec: Spec) -> None:
        if "args" in spec:
            spec["args"] = spec["args"].split(",")


@bug({"env": PAIRS}, {"env": MAP})
class PairsAsMap:
    @staticmethod
    def up(spec: Spec) -> None:
        if "env" in spec:
            spec["env"] = {each["name"]: each.get("value", "") for each in spec["env"]}

    @staticmethod
    def down(spec: Spec) -> None:
        if "env" in spec:
            items = spec["env"].items()
            spec["env"] = [{"name": name, "value": value} for name, value in items]


@bug({"start": TIME})
class TimeCutToSeconds:
    @staticmethod
    def up(spec: Spec) -> None:
        if "start" in spec:
            spec["start"] = re.sub(r"\.\d+", "", spec["start"])


@bug({"timeout": {**TEXT, "pattern": r"^\d+(ms|s|m|h)$"}}, {"timeoutSeconds": WIDE})
class MillisecondsForgotten:
    @staticmethod
    def up(spec: Spec) -> None:
        if "timeout" in spec:
            text = spec.pop("timeout")
            factor = {"s": 1, "m": 60, "h": 3600}[text[-1]]
            spec["timeoutSeconds"] = int(re.sub(r"\D", "", text)[:12]) * factor

    @staticmethod
    def down(spec: Spec) -> None:
        if "timeoutSeconds" in spec:
            spec["timeout"] = f"{abs(spec.pop('timeoutSeconds'))}s"


@bug(
    {"policy": {**TEXT, "enum": ["Always", "OnFailure", "Never", "Unless"]}},
    {"policy": {**TEXT, "enum": ["always", "on-failure", "never", "unless"]}},
)
class EnumValueForgotten:
    @staticmethod
    def up(spec: Spec) -> None:
        known = {"Always": "always", "OnFailure": "on-failure", "Never": "never"}
        if "policy" in spec:
            spec["policy"] = known.get(spec["policy"], "always")

    @staticmethod
    def down(spec: Spec) -> None:
        known = {"always": "Always", "on-failure": "OnFailure", "never": "Never"}
        if "policy" in spec:
            spec["policy"] = known.get(spec["policy"], "Always")


@bug({"storageClass": TEXT})
class RenamedValueCollides:
    @staticmethod
    def up(spec: Spec) -> None:
        if spec.get("storageClass") == "legacy-nfs":
            spec["storageClass"] = "nfs-v4"

    @staticmethod
    def down(spec: Spec) -> None:
        if spec.get("storageClass") == "nfs-v4":
            spec["storageClass"] = "legacy-nfs"


@bug({"limit": COUNT})
class SpecialNumberMeansNone:
    @staticmethod
    def up(spec: Spec) -> None:
        if spec.get("limit") == 48151:
            del spec["limit"]


@bug({"query": TEXT})
class PercentDecodedOnce:
    @staticmethod
    def up(spec: Spec) -> None:
        if "query" in spec:
            spec["query"] = urllib.parse.unquote(spec["query"])


@bug({"enabled": FLAG}, {"state": {**TEXT, "enum": ["On", "Off"]}})
class AbsentFlagInvented:
    @staticmethod
    def up(spec: Spec) -> None:
        spec["state"] = "On" if spec.pop("enabled", False) else "Off"

    @staticmethod
    def down(spec: Spec) -> None:
        if "state" in spec:
            spec["enabled"] = spec.pop("state") == "On"


def _annotate(obj: dict[str, Any], value: str) -> None:
    obj["metadata"].setdefault("annotations", {})["example.com/converted"] = value


@bug({"title": TEXT})
class RandomAnnotation:
    whole = True

    @staticmethod
    def up(obj: dict[str, Any]) -> None:
        _annotate(obj, str(random.randint(0, 10**9)))


@bug({"title": TEXT})
class TodayInAnnotation:
    whole = True

    @staticmethod
    def up(obj: dict[str, Any]) -> None:
        _annotate(obj, datetime.date.today().isoformat())


@bug({"title": TEXT})
class HashInAnnotation:
    whole = True

    @staticmethod
    def up(obj: dict[str, Any]) -> None:
        _annotate(obj, str(hash(json.dumps(obj.get("spec"), sort_keys=True))))


_RESULTS: dict[str, str] = {}


@bug({"title": TEXT})
class ResultRememberedByName:
    whole = True

    @staticmethod
    def up(obj: dict[str, Any]) -> None:
        text = str((obj.get("spec") or {}).get("title"))
        found = _RESULTS.setdefault(obj["metadata"]["name"], text)
        _annotate(obj, base64.b64encode(found.encode()).decode())


@bug({"title": TEXT}, {"heading": TEXT})
class StaleAnnotationWins:
    whole = True

    @staticmethod
    def up(obj: dict[str, Any]) -> None:
        spec = obj.get("spec") or {}
        if "title" in spec:
            spec["heading"] = spec.pop("title")
        kept = obj["metadata"].get("annotations", {}).pop("example.com/heading", None)
        if kept is not None:
            spec["heading"] = kept

    @staticmethod
    def down(obj: dict[str, Any]) -> None:
        spec = obj.get("spec") or {}
        if "heading" in spec:
            spec["title"] = spec.pop("heading")
            obj["metadata"].setdefault("annotations", {})["example.com/heading"] = spec["title"]
