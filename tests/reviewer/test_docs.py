"""The documents say what the code does."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from instar.cli.commands.review import add_arguments
from instar.tools.reviewer.advice import advice
from instar.tools.reviewer.render.json import json_schema
from instar.tools.reviewer.render.outputs import FORMS as OUTPUTS
from instar.tools.reviewer.rules import RULES
from tests.reviewer.golden import UPDATE
from tests.reviewer.rulesdoc import DOC, rules_page

DOCS = Path(__file__).parents[2] / "docs" / "reference"


def test_rules_page_is_made_from_the_golden_folders() -> None:
    page = rules_page()
    if UPDATE:
        DOC.write_text(page)

    assert DOC.read_text() == page


def test_every_rule_has_its_heading() -> None:
    headings = [line[3:] for line in DOC.read_text().splitlines() if line.startswith("## ")]

    assert headings == [rule.id for rule in RULES]


def test_every_rule_has_advice() -> None:
    assert all(advice(rule.id) for rule in RULES)


def test_every_option_and_output_is_in_the_guide() -> None:
    text = (DOCS / "review.md").read_text()
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    options = [
        option
        for action in parser._actions
        for option in action.option_strings
        if option.startswith("--") and option != "--help"
    ]

    assert [option for option in options if f"`{option}" not in text] == []
    assert [name for name in OUTPUTS if f"`{name}`" not in text] == []


def test_published_schema_is_the_one_in_use() -> None:
    file = DOCS / "review.schema.json"
    if UPDATE:
        file.write_text(json.dumps(json_schema(), indent=2) + "\n")

    assert json.loads(file.read_text()) == json_schema()
