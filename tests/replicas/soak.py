"""``scripts/soak [SECONDS]``: random faults under load for as long as one likes, checked by rounds.

A round is a collection of its own: write, a few faults in random order, compare everything.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.replicas import faults
from tests.replicas.checker import Checker
from tests.replicas.client import Client
from tests.replicas.processes import Deployment, deployed


async def soak(deployment: Deployment, seconds: float, writers: int, chance: random.Random) -> None:
    began, number = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        number += 1
        chosen = chance.sample(faults.ALL, k=3)
        checker = await one_round(deployment, f"soak{number}.io", chosen, writers)
        names = ", ".join(fault.__name__ for fault in chosen)
        print(
            f"{time.monotonic() - began:7.1f} s  round {number}: {len(checker.acknowledged)} "
            f"writes acknowledged, {checker.refused} refused, {checker.lost} without an answer, "
            f"{checker.reads} reads compared; all accounted for ({names})",
            flush=True,
        )


async def one_round(
    deployment: Deployment, group: str, chosen: list[faults.Fault], writers: int
) -> Checker:
    async with Client.over(deployment.replicas) as client:
        checker = Checker(client, group)
        await checker.start(writers)
        for fault in chosen:
            await checker.more_acknowledged(100)
            await fault(deployment, checker)
        await checker.more_acknowledged(100)
        await checker.finish()
        return checker


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("seconds", type=float, nargs="?", default=60.0)
    parser.add_argument("--members", type=int, default=3, help="etcd members (default 3)")
    parser.add_argument("--replicas", type=int, default=2, help="instar replicas (default 2)")
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=None)
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else random.randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="instar-soak-") as folder:
        try:
            with deployed(Path(folder), members=args.members, replicas=args.replicas) as deployment:
                chance = random.Random(seed)
                asyncio.run(soak(deployment, args.seconds, args.writers, chance))
        except AssertionError as error:
            print(f"FAILED: {error}", file=sys.stderr)
            for log in sorted(Path(folder).glob("r*.log")):
                print(f"--- {log.name}\n{log.read_text()[-3000:]}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
