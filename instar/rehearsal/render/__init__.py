"""A rehearsal as text people or machines read: one module per form, chosen by name."""

from __future__ import annotations

from collections.abc import Callable

from instar.rehearsal.deciding import Decision
from instar.rehearsal.model import Rehearsal
from instar.rehearsal.render.html import to_html
from instar.rehearsal.render.json import to_json
from instar.rehearsal.render.junit import to_junit
from instar.rehearsal.render.markdown import to_markdown

FORMS = ("text", "json", "junit", "markdown", "html")
MACHINE: dict[str, Callable[[Rehearsal, Decision], str]] = {
    "json": to_json,
    "junit": to_junit,
    "markdown": to_markdown,
    "html": to_html,
}
"""Every form but ``text``, which also takes colours."""
