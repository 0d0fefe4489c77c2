"""``python -m bench.releases FOLDER --server KUBECONFIG``: replays the CRDs of real releases in
order, on a kube-apiserver and on an instar server, with objects in them.

``FOLDER/PROJECT/RELEASE/*.yaml`` are CRDs; releases are taken in the order of their names. After
each release the servers' answers are compared: to the writes of CRDs, the CRDs with their status,
discovery, lists at every served version as JSON and as a Table, a change and a replacement of an
object of an earlier release. Webhook conversions are directed to a webhook here. A release that
drops a stored version is refused at first; then the objects are migrated and it is written again.
Prints each difference; exits with 1 if there is any.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.release_client import Asked, ReleaseClient
from bench.workedcrds import sample
from instar.base.json_values import Object, copy_json
from instar.kube.api.encoding.manifests import documents
from instar.tools.reviewer.witnesses.samples import Samples
from instar.wire.client.kubeconfig import load_access
from tests.recordings.comparing import row_differences
from tests.recordings.playing import PlayedServer
from tests.recordings.replay import played_server
from tests.support.webhook import Webhook, relabel

Release = dict[str, Object]
"""Name of a CRD → the CRD."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.releases", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--server", required=True, metavar="KUBECONFIG", help="of kube-apiserver")
    parser.add_argument("--only", default="", metavar="TEXT", help="projects with this in the name")
    given = parser.parse_args(argv)
    logging.disable(logging.WARNING)  # of instar: a webhook's calls and failures
    access = load_access(given.server)
    real = PlayedServer(access.server, access.ssl_context(), dict(access.headers()), real=True)
    total: Counter[str] = Counter()
    with played_server() as instar, Webhook(convert=relabel) as hook:
        for project in sorted(given.folder.iterdir()):
            if given.only in project.name:
                total += _compare(project, (real, instar), hook)
    print(", ".join(f"{count:,} {what}" for what, count in total.items()))
    return int(total["different"] > 0)


def _compare(project: Path, servers: Sequence[PlayedServer], hook: Webhook) -> Counter[str]:
    releases = [(folder.name, _redirected(folder, hook)) for folder in sorted(project.iterdir())]
    with ThreadPoolExecutor(len(servers)) as pool:
        real, ours = pool.map(lambda server: Replay(server).rows(releases), servers)
    told = Counter(releases=len(releases), answers=len(real))
    told["CRDs"] = sum(len(release) for _, release in releases)
    for expected, found in zip(real, ours, strict=False):
        lines = row_differences(expected, found)
        if lines:
            told["different"] += 1
            print(f"{project.name} {expected['step']}: {expected['ask']}", *lines, sep="\n    ")
    if len(real) != len(ours):
        told["different"] += 1
        print(f"{project.name}: {len(real)} answers, and {len(ours)} of instar")
    print(f"{project.name}: {dict(told)}", flush=True)
    return told


def _redirected(folder: Path, hook: Webhook) -> Release:
    """Return the CRDs of a release; those with a webhook call ``hook``."""
    out: Release = {}
    for path in sorted(folder.glob("*.yaml")):
        for document in documents(path.read_text(), str(path)):
            crd = document.value
            crd.pop("status", None)
            conversion = crd["spec"].get("conversion") or {}
            if conversion.get("strategy") == "Webhook":
                crd["spec"]["conversion"] = hook.conversion()
            out[crd["metadata"]["name"]] = crd
    return out


class Replay:
    """The releases of a project on one server."""

    def __init__(self, server: PlayedServer) -> None:
        self._client = ReleaseClient(server)
        self._made: dict[str, list[str]] = {}
        """CRD → the names of its objects."""

    def rows(self, releases: Sequence[tuple[str, Release]]) -> list[Asked]:
        client = self._client
        for name, release in releases:
            client.step = name
            for crd in release.values():
                self._write(crd)
            client.settle(release.values())
            for crd in release.values():
                self._work(crd, name)
        self._remove({name for _, release in releases for name in release})
        return client.rows

    def _write(self, crd: Object) -> None:
        client, name = self._client, crd["metadata"]["name"]
        code = client.write_crd(crd)
        if code == 422 and name in self._made:
            client.migrate(name)
            client.write_crd(crd)

    def _work(self, crd: Object, release: str) -> None:
        client, name = self._client, crd["metadata"]["name"]
        stored = client.read_crd(name)
        if stored is None:
            return
        former = self._made.setdefault(name, [])
        for version in stored["spec"]["versions"]:
            if not version["served"]:
                continue
            home = client.home(stored, version["name"])
            client.ask("GET", home.discovery)
            for number, obj in enumerate(_objects(stored, version, release)):
                code = client.ask("POST", home.objects, obj)
                if code == 201 and number == 0:
                    former.append(obj["metadata"]["name"])
            client.ask("GET", home.objects)
            client.ask("GET", home.objects, table=True)
            for old in former[:1]:
                client.ask(
                    "PATCH", f"{home.objects}/{old}", {"metadata": {"labels": {"in": release}}}
                )
                client.replace_as_read(f"{home.objects}/{old}")

    def _remove(self, names: set[str]) -> None:
        for name in sorted(names):
            self._client.remove_crd(name)


def _objects(crd: Object, version: Object, release: str) -> Iterator[Object]:
    """An object with most fields, and the smallest one."""
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    for size, value in (("full", sample(schema, 0)), ("small", Samples().minimal(schema))):
        body: Any = copy_json(value) if isinstance(value, dict) else {}
        label = f"{size}-{version['name']}-{release}".lower().replace("_", "-")
        yield {
            **body,
            "apiVersion": f"{crd['spec']['group']}/{version['name']}",
            "kind": crd["spec"]["names"]["kind"],
            "metadata": {"name": label},
        }


if __name__ == "__main__":
    sys.exit(main())
