"""``scripts/fuzz [MINUTES]``: real servers in every mode, many wrong requests, and what they do to
the servers."""

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
from tests.fuzz.material import Material, gathered
from tests.fuzz.modes import MODES, engine
from tests.fuzz.state import State

FOUND = Path(__file__).resolve().parents[1] / "robust" / "found"


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    add = parser.add_argument
    add("minutes", type=float, nargs="?", default=10.0)
    add("--requests", type=int, default=10**9, help="stop after so many, those of --state included")
    add("--connections", type=int, default=8)
    add("--seed", type=int, default=None, help="of the first turn; the next ones are drawn from it")
    add("--keep", type=Path, default=FOUND, help="where found cases go")
    add("--mode", default="all", help=f"with commas, of {', '.join(MODES)}; default: all, in turns")
    add("--turn", type=float, default=3.0, help="minutes for a mode before the next has its turn")
    add("--state", type=Path, default=None, help="a file with what was sent so far, to go on from")
    add("--lag", type=float, default=1.0, help="seconds that /livez may take")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the servers go too
    modes = tuple(MODES) if args.mode == "all" else tuple(args.mode.split(","))
    for mode in modes:
        if mode not in MODES:
            parser.error(f"there is no mode {mode}; there are {', '.join(MODES)}")
    chance = random.Random(args.seed if args.seed is not None else random.randrange(1 << 32))
    state, material = State(args.state), gathered()
    print(f"{len(material.crds)} CRDs, {len(material.resources)} objects", flush=True)
    deadline, failed = time.monotonic() + args.minutes * 60, False
    while time.monotonic() < deadline and state.total < args.requests:
        mode, seed = state.next_mode(modes), chance.randrange(1 << 32)
        minutes = min(args.turn, (deadline - time.monotonic()) / 60)
        failed |= _turn(args, state, material, mode, seed, minutes)
        print(f"{state.total} requests in all modes so far", flush=True)
    return int(failed)


def _turn(
    args: argparse.Namespace,
    state: State,
    material: Material,
    mode: str,
    seed: int,
    minutes: float,
) -> bool:
    """Whether something was found in a mode within a few minutes."""
    print(f"mode {mode}, seed {seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix=f"instar-fuzz-{mode}-"))
    began = time.monotonic()
    with engine(mode, folder) as arguments:
        campaign = Campaign(
            folder,
            material,
            Maker(material, random.Random(seed)),
            connections=args.connections,
            keep=args.keep,
            patience=args.lag,
            arguments=arguments,
            mode=mode,
            seed=seed,
        )
        try:
            asyncio.run(campaign.run(minutes * 60, args.requests - state.total))
        finally:
            tally = campaign.tally
            state.add(mode, seed, tally.sent, [found.trouble for found in tally.found])
    taken = time.monotonic() - began
    statuses = ", ".join(f"{status} × {count}" for status, count in sorted(tally.statuses.items()))
    print(f"{tally.sent} requests in {taken:.0f} s ({tally.sent / taken:.0f}/s): {statuses}")
    print(f"worst lag {tally.worst_lag:.2f} s, memory {[each >> 20 for each in tally.memory]} MiB")
    for trouble in tally.unexplained:
        print(f"seen once, and not again on a server of its own: {trouble[:300]}")
    if tally.found:
        print(f"FAILED: {len(tally.found)} found; logs in {folder}", flush=True)
        return True
    shutil.rmtree(folder, ignore_errors=True)
    print("nothing found", flush=True)
    return False


if __name__ == "__main__":
    sys.exit(main())
