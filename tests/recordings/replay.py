"""The scenarios of a topic on an instar server, compared with what was recorded.

``python -m tests.recordings.replay [--answers FOLDER] [TOPIC ...]`` prints what differs.
"""

from __future__ import annotations

import argparse
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from instar.server.registry.admission.plugin_names import HERE
from tests.builtins.replay import TOKEN, recorders_server
from tests.recordings.comparing import row_differences
from tests.recordings.corpus import ANSWERS, recorded
from tests.recordings.hooks import RecordingHook
from tests.recordings.playing import PlayedServer, play
from tests.recordings.questions import TOPICS, scenarios_of

_AT_ONCE = 3
"""Scenarios: some wait for the server, as a read of a revision that never comes."""
Compared = dict[str, list[str]]
"""``SCENARIO STEP`` → what differs, of every recorded request."""


@contextmanager
def played_server() -> Iterator[PlayedServer]:
    """An instar server in the state in which the recorder found kube-apiserver."""
    plugins = HERE | {"ServiceAccount"}
    with recorders_server(admission_plugins=plugins) as server:
        context = ssl.create_default_context(cadata=server.ca.decode())
        yield PlayedServer(server.url, context, {"Authorization": f"Bearer {TOKEN}"}, real=False)


def compare(
    topic: str, server: PlayedServer, hook: RecordingHook, answers: Path = ANSWERS
) -> Compared:
    expected = recorded(topic, answers)
    found: Compared = {}
    scenarios = scenarios_of(topic)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        played = list(pool.map(lambda scenario: play(scenario, server, hook), scenarios))
    for scenario, rows in zip(scenarios, played, strict=True):
        ours = {row["step"]: row for row in rows}
        theirs = {row["step"]: row for row in expected.pop(scenario.name, ())}
        for step in sorted({*ours, *theirs}):
            line = f"{scenario.name} {step}"
            if step not in theirs or step not in ours:
                found[line] = ["not recorded yet, or no longer asked: scripts/record"]
            else:
                found[line] = row_differences(theirs[step], ours[step])
    for name in expected:
        found[name] = ["no longer asked: scripts/record"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=Path, default=ANSWERS)
    parser.add_argument("topics", nargs="*")
    chosen = parser.parse_args()
    with played_server() as server, RecordingHook() as hook:
        for topic in chosen.topics or TOPICS:
            began = time.monotonic()
            found = compare(topic, server, hook, chosen.answers)
            for line, texts in found.items():
                if texts:
                    print(f"{topic} {line}", *texts[:6], sep="\n    ")
            same = sum(not texts for texts in found.values())
            took = time.monotonic() - began
            print(f"{topic}: {same} of {len(found)} the same, {took:.1f} s", flush=True)


if __name__ == "__main__":
    main()
