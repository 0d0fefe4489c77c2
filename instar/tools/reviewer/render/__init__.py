"""Renderers of review reports: one module per output format, chosen by name.

``instar review`` and the console call the one that ``--output`` names.
"""

from __future__ import annotations

from collections.abc import Callable

from instar.tools.reviewer.render.github import to_github
from instar.tools.reviewer.render.gitlab import to_gitlab
from instar.tools.reviewer.render.html import to_html
from instar.tools.reviewer.render.json import to_json
from instar.tools.reviewer.render.junit import to_junit
from instar.tools.reviewer.render.markdown import to_markdown
from instar.tools.reviewer.render.sarif import to_sarif
from instar.tools.reviewer.report import Report

MACHINE: dict[str, Callable[[Report], str]] = {
    "markdown": to_markdown,
    "json": to_json,
    "sarif": to_sarif,
    "github": to_github,
    "gitlab": to_gitlab,
    "junit": to_junit,
    "html": to_html,
}
"""Every format but ``text``, which also takes colours and detail."""
