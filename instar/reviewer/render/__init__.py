"""A report as text people or machines read: one module per form, chosen by name."""

from __future__ import annotations

from collections.abc import Callable

from instar.reviewer.render.github import to_github
from instar.reviewer.render.html import to_html
from instar.reviewer.render.json import to_json
from instar.reviewer.render.junit import to_junit
from instar.reviewer.render.markdown import to_markdown
from instar.reviewer.render.sarif import to_sarif
from instar.reviewer.report import Report

MACHINE: dict[str, Callable[[Report], str]] = {
    "markdown": to_markdown,
    "json": to_json,
    "sarif": to_sarif,
    "github": to_github,
    "junit": to_junit,
    "html": to_html,
}
"""Every form but ``text``, which also takes colours and detail."""
