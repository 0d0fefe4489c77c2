"""``scripts/fuzz [MINUTES]``: a real server, many wrong requests, and somebody who watches it."""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.campaign import Campaign
from tests.fuzz.making import Maker
from tests.fuzz.material import gathered

FOUND = Path(__file__).resolve().parents[1] / "robust" / "found"


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    add = parser.add_argument
    add("minutes", type=float, nargs="?", default=10.0)
    add("--requests", type=int, default=10**9, help="stop after so many")
    add("--connections", type=int, default=8)
    add("--seed", type=int, default=None)
    add("--keep", type=Path, default=FOUND, help="where found cases go")
    add("--storage", default="memory:")
    add("--lag", type=float, default=1.0, help="seconds that /livez may take")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the servers go too
    seed = args.seed if args.seed is not None else random.randrange(1 << 32)
    material = gathered()
    print(f"seed {seed}, {len(material.crds)} CRDs, {len(material.resources)} objects", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="instar-fuzz-"))
    campaign = Campaign(
        folder,
        material,
        Maker(material, random.Random(seed)),
        connections=args.connections,
        keep=args.keep,
        patience=args.lag,
        arguments=("--storage", args.storage),
    )
    began = time.monotonic()
    asyncio.run(campaign.run(args.minutes * 60, args.requests))
    tally, taken = campaign.tally, time.monotonic() - began
    statuses = ", ".join(f"{status} × {count}" for status, count in sorted(tally.statuses.items()))
    print(f"{tally.sent} requests in {taken:.0f} s ({tally.sent / taken:.0f}/s): {statuses}")
    print(f"worst lag {tally.worst_lag:.2f} s, memory {[each >> 20 for each in tally.memory]} MiB")
    for trouble in tally.unexplained:
        print(f"seen once, and not again on a server of its own: {trouble[:300]}")
    if tally.found:
        print(f"FAILED: {len(tally.found)} found; logs in {folder}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    print("nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
