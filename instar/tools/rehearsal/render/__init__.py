"""Renderers of a rehearsal: one module per output format, chosen by name.

``instar rehearse`` calls the one that ``--output`` names.
"""

from __future__ import annotations

from collections.abc import Callable

from instar.tools.rehearsal.go_no_go import GoNoGo
from instar.tools.rehearsal.model import Rehearsal
from instar.tools.rehearsal.render.html import to_html
from instar.tools.rehearsal.render.json import to_json
from instar.tools.rehearsal.render.junit import to_junit
from instar.tools.rehearsal.render.markdown import to_markdown

FORMS = ("text", "json", "junit", "markdown", "html")
MACHINE: dict[str, Callable[[Rehearsal, GoNoGo], str]] = {
    "json": to_json,
    "junit": to_junit,
    "markdown": to_markdown,
    "html": to_html,
}
"""Every format but ``text``, which also takes colours."""
