"""The CRD of a random history: its conversion with planted losses, its objects, what every version
shows of them, and the bytes in etcd. ``loss_play.py`` does things to it."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.json_values import Object
from instar.sdk import Converter, lossy, move
from instar.tools.migrator.census.version_census import estimate
from instar.tools.migrator.preflight import fetch_crd
from instar.tools.migrator.rewrite_checks.pass_record import load_record
from instar.wire.client.paths import crd_path
from tests.migrator.loss_cluster import LossCluster, until
from tests.migrator.support import client, edit_crd, group_of, name_of, objects_path, schema
from tests.support import crds
from tests.support.webhook import relabel

_TAKEN_UP = 2.0
"""Seconds in which a kube-apiserver takes up a new storage version; no API says when it has."""


@dataclass(frozen=True)
class History:
    conversion: str
    """``none``; webhooks: ``webhook``, ``rules``, ``lossy`` and ``lossy-rules`` (v1 forgets
    spec.legacy), ``liar`` (only v1alpha1 does, and only from v1), ``flapping``."""
    default: bool
    """Whether v1 has a default that the others have not."""
    objects: tuple[tuple[str, bool], ...]
    """The version each is written at, and whether it sets spec.legacy where that exists."""
    steps: tuple[str, ...]
    versions: tuple[str, ...] = ("v1beta1", "v1")
    strike: int = 1
    """At which write a kill or a change by another client happens."""
    late: bool = False
    """Whether it happens when the server has answered."""


class LossSubject:
    def __init__(self, cluster: LossCluster, history: History) -> None:
        self.cluster, self.history, self.api = cluster, history, cluster.api
        cluster.played += 1
        self.api.passing = nothing_happens
        self.folder = cluster.folder / f"history{cluster.played}"
        self.folder.mkdir()
        self.versions = history.versions
        self.storage = "v1beta1"
        self.definition = self._crd()
        self.asked = 0
        cluster.hook.convert = relabel
        self._rules = self._converter()
        self.api.create_crd(self.definition)
        self.names: list[str] = []
        for version, legacy in history.objects:
            self._create(version, legacy)
        self.by_hands: set[str] = set()
        """Objects whose bytes no API server wrote."""

    def _crd(self) -> Object:
        later = {"replicas": {"type": "integer", "default": 3}} if self.history.default else {}
        if self.history.conversion == "none":
            newest = schema(**later)
        elif "rules" in self.history.conversion:
            newest = schema("heritage", **later)
        else:
            newest = schema("legacy", **later)
        remote = self.history.conversion != "none"
        changes: Object = {"conversion": self.cluster.hook.conversion()} if remote else {}
        versions = [
            crds.version(
                name,
                newest if name == "v1" else schema("legacy"),
                storage=name == "v1beta1",
                subresources={"status": {}},
            )
            for name in self.versions
        ]
        group = f"losses{self.cluster.played}.example.com"
        return crds.crd(*versions, group=group, plural="widgets", kind="Widget", **changes)

    def _converter(self) -> Any:
        converter = Converter("Widget", group=group_of(self.definition), hub="v1")
        loses = self.history.conversion == "lossy-rules"
        rule = lossy("spec.legacy", "planted") if loses else move("spec.legacy", "spec.heritage")
        for version in self.versions:
            if version != "v1":
                converter.between(version, "v1", rules=[rule])
        return converter.build()

    def convert(self, obj: Object, wanted: str) -> Object:
        self.asked += 1
        kind = self.history.conversion
        if kind == "flapping" and self.asked % 7 == 0:
            raise RuntimeError("out of luck")
        if "rules" in kind:
            (converted,) = self._rules.convert_all([obj], wanted)
            return dict(converted)
        out = relabel(obj, wanted)
        forgets = kind == "lossy" and wanted.endswith("/v1")
        if kind == "liar":
            forgets = obj["apiVersion"].endswith("/v1") and wanted.endswith("/v1alpha1")
        if not forgets:
            return out
        return {**out, "spec": {k: v for k, v in out["spec"].items() if k != "legacy"}}

    def _create(self, version: str, legacy: bool) -> None:
        name = f"w{len(self.names):03d}"
        version = version if version in self.versions else "v1beta1"
        spec: Object = {"host": name, "size": len(self.names)}
        if legacy and version != "v1":
            spec["legacy"] = f"kept-{name}"
        body = {
            "apiVersion": f"{group_of(self.definition)}/{version}",
            "kind": "Widget",
            "metadata": {"name": name},
            "spec": spec,
        }
        until(lambda: self._is_created(version, body))
        self.names.append(name)

    def _is_created(self, version: str, body: Object) -> bool:
        """A kube-apiserver answers 404 for a moment after it has established a CRD."""
        answer = self.api.request("POST", objects_path(self.definition, version), body)
        if self.api.is_real and answer.status == 404:
            return False
        assert answer.status == 201, answer.text
        return True

    @property
    def prefix(self) -> str:
        return f"{group_of(self.definition)}/widgets/"

    def other_version(self) -> str:
        return "v1" if self.storage == "v1beta1" else "v1beta1"

    def store_at(self, storage: str) -> None:
        def change(current: Object) -> None:
            for item in current["spec"]["versions"]:
                item["storage"] = item["name"] == storage

        edit_crd(self.api, self.definition, change)
        if self.api.is_real:
            time.sleep(_TAKEN_UP)

    def storage_now(self) -> str:
        current = self.api.request("GET", crd_path(name_of(self.definition))).json
        return str(next(v["name"] for v in current["spec"]["versions"] if v["storage"]))

    def stored(self) -> dict[str, bytes]:
        return self.cluster.stored(self.prefix)

    def stored_versions(self) -> Counter[str]:
        values = (json.loads(value) for value in self.stored().values())
        return Counter(value["apiVersion"].rpartition("/")[2] for value in values)

    def values(self) -> set[str]:
        """What objects hold in fields that a planted loss drops, at any version."""
        specs = (obj["spec"] for obj in self.readings().values())
        return {spec[name] for spec in specs for name in ("legacy", "heritage") if name in spec}

    def readings(self) -> dict[str, Any]:
        """Every object at every version with a steady webhook, without bookkeeping."""
        found: dict[str, Any] = {}
        flapping, self.asked = self.asked, 1
        for version in self.versions:
            for name in self.names:
                for _ in range(3):
                    answer = self.api.request("GET", objects_path(self.definition, version, name))
                    if answer.status == 200:
                        found[f"{version}/{name}"] = _without_bookkeeping(answer.json)
                        break
        self.asked = flapping
        return found

    def census_denies_nothing(self) -> None:
        async def work() -> Any:
            async with client(self.api) as api:
                live = await fetch_crd(api, name_of(self.definition))
                record = load_record(live.name, api.access.server)
                return await estimate(api, live, record=record)

        census = asyncio.run(work())
        lying = self.stored_versions()
        # Bytes that no API server wrote cannot be told from others through the API.
        allowed = len(self.by_hands)
        for version in self.versions:
            assert census.counts.get(version, 0) <= lying[version] + allowed, census
            within = lying[version] <= census.at_most(version) + allowed
            assert not census.counted or within, census


def nothing_happens(method: str, path: str, answered: bool) -> bool:
    return False


def _without_bookkeeping(obj: Object) -> Object:
    metadata = obj["metadata"]
    for part in ("resourceVersion", "generation"):
        metadata.pop(part, None)
    owned: dict[tuple[str, str], set[str]] = {}
    for entry in metadata.get("managedFields") or ():
        fields = owned.setdefault((entry["manager"], entry["operation"]), set())
        fields.update(_paths(entry["fieldsV1"]))
    # A manager's entries at two versions may become one; what it owns stays.
    metadata["managedFields"] = sorted(
        (*owner, tuple(sorted(each))) for owner, each in owned.items()
    )
    return obj


def _paths(fields: Object, above: str = "") -> Iterator[str]:
    for name, inner in fields.items():
        yield f"{above}/{name}"
        yield from _paths(inner, f"{above}/{name}")
