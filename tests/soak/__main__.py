"""``scripts/soak [SECONDS]``: mixed load under disturbances, every answer held against the others.

Readers, writers and watchers in two versions with a conversion webhook between them, a CRD that
changes every second, and servers that are killed, stopped, frozen and given another time.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from pathlib import Path

from tests.replicas.client import Client
from tests.soak.deployments import ENGINES, Soaked, temporary
from tests.soak.load import Load, convert
from tests.support.webhook import Webhook

_DISTURBANCES = 3
"""Of one chapter."""


async def soak(soaked: Soaked, hook: Webhook, seconds: float, clients: int, seed: int) -> str:
    """The row of the result table."""
    began, chapters, calls = time.monotonic(), 0, 0
    chance = random.Random(seed)
    async with Client.over(soaked.replicas) as client:
        load = Load(client, hook.conversion(), chance)
        await load.prepare()
        while time.monotonic() - began < seconds:
            await load.chapter(clients, lambda: soaked.disturb(load, chance, _DISTURBANCES))
            chapters, calls = chapters + 1, calls + hook.reviews
            hook.reset()
            print(
                f"{time.monotonic() - began:7.1f} s  chapter {chapters}: {load.operations} "
                f"operations, {load.histories} histories, all explained",
                flush=True,
            )
    done = ", ".join(f"{count} × {name}" for name, count in sorted(soaked.done.items()))
    return (
        f"| {(time.monotonic() - began) / 60:.0f} min | {load.operations:,} | "
        f"{load.unanswered:,} | {load.histories:,} | {load.events:,} | {load.changes} | "
        f"{calls:,} | {done} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    add = parser.add_argument
    add("seconds", type=float, nargs="?", default=60.0, help="for each engine")
    add("--engine", choices=(*ENGINES, "all"), default="all")
    add("--clients", type=int, default=8)
    add("--seed", type=int, default=None)
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else random.randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    for engine in ENGINES if args.engine == "all" else (args.engine,):
        if not _soaked(engine, args.seconds, args.clients, seed):
            return 1
    return 0


def _soaked(engine: str, seconds: float, clients: int, seed: int) -> bool:
    with temporary() as folder, Webhook(convert) as hook:
        try:
            with ENGINES[engine](Path(folder), random.Random(seed)) as soaked:
                row = asyncio.run(soak(soaked, hook, seconds, clients, seed))
        except (AssertionError, TimeoutError) as error:
            print(f"FAILED on {engine}: {error!r}", file=sys.stderr)
            for log in sorted(Path(folder).glob("r*.log")):
                print(f"--- {log.name}\n{log.read_text()[-3000:]}", file=sys.stderr)
            return False
    print(f"| {engine} {row}", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
