"""``python -m bench.adopt_rounds --kubeconfig FILE --instar-service NS/NAME:PORT --ca-file PEM``:
moves a group with two CRDs to instar and back, under load, and counts what was lost.

It creates the group ``rounds.example.com`` with objects, writes to it at a steady rate through
every ``--api-server``, reads and watches it, and runs ``instar adopt`` and ``instar adopt
--return`` in turns. Prints a line for each move, then: acknowledged writes that are lost, objects
that changed although no client wrote them, failed reads, and watches that ended in another state
than the list. Exits with 1 if there is any of these. instar runs behind the cluster already.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

from bench.adopt_load import GROUP, KINDS, GroupLoad, contents, install, written_names
from instar.wire.client.client import Client
from instar.wire.client.kubeconfig import load_access


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.adopt_rounds", description=__doc__)
    add = parser.add_argument
    add("--kubeconfig", required=True)
    add("--api-server", action="append", default=[], metavar="URL", help="once for each replica")
    add("--instar-service", required=True, metavar="NAMESPACE/NAME:PORT")
    add("--ca-file", required=True, metavar="PEM")
    add("--etcd", default="", metavar="URL", help="return below the API")
    add("--rounds", type=int, default=20)
    add("--objects", type=int, default=800)
    add("--size", type=int, default=1_400, help="bytes of text in each object")
    add("--writes", type=float, default=50, help="per second")
    add("--journals", default=".", metavar="FOLDER")
    add("--pause", type=float, default=2.0, help="seconds between two moves")
    return asyncio.run(run(parser.parse_args(argv)))


async def run(given: argparse.Namespace) -> int:
    access = load_access(given.kubeconfig)
    urls = given.api_server or [access.server]
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(Client(replace(access, server=url))) for url in urls
        ]
        await install(clients[0], given.objects, given.size)
        before = await contents(clients[0])
        load = GroupLoad(clients, written_names(given.objects), given.writes)
        load.start()
        failures = 0
        for number in range(given.rounds):
            for back in (False, True):
                await asyncio.sleep(given.pause)
                failures += await move(given, load, number + 1, back=back)
        await asyncio.sleep(given.pause)
        await load.stop()
        return await judged(clients, load, before) or int(failures > 0)


async def move(given: argparse.Namespace, load: GroupLoad, number: int, *, back: bool) -> int:
    refused, acknowledged, began = len(load.refused), load.acknowledged, time.monotonic()
    found = await command(given, back=back)
    await asyncio.sleep(1.0)  # the last refused write may be on its way
    differs = found.get("differs", ["the command failed"])
    print(
        f"round {number} {'back' if back else 'forth'}: {time.monotonic() - began:.1f} s,"
        f" {load.acknowledged - acknowledged} writes acknowledged,"
        f" {len(load.refused) - refused} refused within {load.refused_span(refused):.2f} s"
        f" (freeze {found.get('frozenSeconds', 0)} s), {len(differs)} differ",
        flush=True,
    )
    return len(differs)


async def command(given: argparse.Namespace, *, back: bool) -> dict[str, Any]:
    flags = ["--kubeconfig", given.kubeconfig, "-o", "json"]
    flags += ["--journal", f"{given.journals}/adopt-rounds.json"]
    flags += ["--instar-service", given.instar_service, "--ca-file", given.ca_file]
    for url in given.api_server:
        flags += ["--api-server", url]
    if back:
        flags += ["--return", *(("--etcd", given.etcd) if given.etcd else ("--accept-new-uids",))]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "instar", "adopt", GROUP, *flags),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, told = await process.communicate()
    if process.returncode:
        print(told.decode(), out.decode(), file=sys.stderr)
        return {}
    return dict(json.loads(out))


async def judged(clients: Sequence[Client], load: GroupLoad, before: dict[Any, Any]) -> int:
    after = await contents(clients[0])
    lost = load.lost(after)
    changed = [key for key, obj in before.items() if "quiet" in key[2] and after.get(key) != obj]
    listed = {
        name: obj["spec"]["count"]
        for (plural, version, name), obj in after.items()
        if (plural, version) == (KINDS[0].plural, "v1")
    }
    differing = await load.end_watches(listed)
    print(
        f"{load.acknowledged} writes acknowledged, {len(lost)} lost {lost[:3]},"
        f" {len(load.failed)} failed otherwise {load.failed[:2]}\n"
        f"{sum('quiet' in key[2] for key in before)} objects at a version never written,"
        f" {len(changed)} changed {changed[:3]}\n"
        f"{load.reads} reads, {len(load.unread)} failed {load.unread[:2]}\n"
        f"watches listed {load.lists} times and differ from the list in {differing} objects"
    )
    return int(bool(lost or changed or load.unread or any(differing)))


if __name__ == "__main__":
    sys.exit(main())
