"""What is asked, a module for each topic: each has ``scenarios()``, which gives the same requests
each time it is called."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from tests.recordings.scenarios import Scenario

TOPICS = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))


def scenarios_of(topic: str) -> list[Scenario]:
    made = list(import_module(f"{__name__}.{topic}").scenarios())
    names = [scenario.name for scenario in made]
    assert len(set(names)) == len(names), f"{topic}: two scenarios of one name"
    return made
