"""``scripts/record --server KUBECONFIG``: plays every scenario on a kube-apiserver and writes its
answers to ``answers/``.

The server is one that holds nothing yet, without controllers besides its own (no
kube-controller-manager, no scheduler), with default admission and RBAC. Its user is ``admin`` of
the group ``system:masters``. The same server release gives the same bytes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from instar.wire.client.kubeconfig import load_access
from tests.recordings.corpus import ANSWERS, written
from tests.recordings.hooks import RecordingHook
from tests.recordings.playing import PlayedServer, Row, play
from tests.recordings.questions import TOPICS, scenarios_of
from tests.recordings.scenarios import Scenario

_AT_ONCE = 6


def record(server: PlayedServer, topics: Sequence[str]) -> dict[str, str]:
    """Topic → the text of its file."""
    with RecordingHook() as hook, ThreadPoolExecutor(_AT_ONCE) as pool:

        def played(scenario: Scenario) -> list[Row]:
            return play(scenario, server, hook)

        asked = {topic: scenarios_of(topic) for topic in topics}
        begun = {
            topic: {scenario.name: pool.submit(played, scenario) for scenario in scenarios}
            for topic, scenarios in asked.items()
        }
        return {
            topic: written({name: future.result() for name, future in scenarios.items()})
            for topic, scenarios in begun.items()
        }


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/record", description=__doc__.split("\n\n")[0])
    parser.add_argument("--server", required=True, metavar="KUBECONFIG")
    parser.add_argument("--into", type=Path, default=ANSWERS, metavar="FOLDER")
    parser.add_argument("--instar", action="store_true", help="the server is instar: wait for less")
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=f"of {', '.join(TOPICS)}")
    chosen = parser.parse_args()
    unknown = [topic for topic in chosen.topics if topic not in TOPICS]
    if unknown:
        parser.error(f"no such topic: {', '.join(unknown)}")
    access = load_access(chosen.server)
    server = PlayedServer(
        access.server, access.ssl_context(), dict(access.headers()), not chosen.instar
    )
    began = time.monotonic()
    files = record(server, chosen.topics or list(TOPICS))
    chosen.into.mkdir(parents=True, exist_ok=True)
    for topic, text in files.items():
        (chosen.into / f"{topic}.jsonl").write_text(text)
        requests = sum(not line.startswith('{"scenario"') for line in text.splitlines())
        print(f"{topic}: {requests} requests, {len(text.encode()):,} bytes")
    total = sum(len(text.encode()) for text in files.values())
    print(f"{total:,} bytes in {time.monotonic() - began:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
