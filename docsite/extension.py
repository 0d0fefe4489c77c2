"""The part that knows Sphinx: pages get their generated parts, files their captions, and links to
files of the repository lead to GitHub. A link to a file that is not there fails the build."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from docsite.commands import commands, extras
from docsite.exitcodes import exit_codes
from docsite.metrics import metrics
from docsite.paths import paths

ROOT = Path(__file__).resolve().parents[1]
REPOSITORY = "https://github.com/instar-dev/instar"
GENERATED: dict[str, Callable[[], str]] = {
    "commands": commands,
    "exit codes": exit_codes,
    "extras": extras,
    "metrics": metrics,
    "paths": paths,
}
_PLACE = re.compile(r"^<!-- from the code: (.+) -->$", re.MULTILINE)
_TITLED = re.compile(r"^```(\w+) title=(\S+)$", re.MULTILINE)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _fill)
    app.connect("doctree-read", _lead_to_repository)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _fill(app: Sphinx, page: str, source: list[str]) -> None:
    text = _PLACE.sub(lambda found: GENERATED[found[1]](), source[0])
    source[0] = _TITLED.sub(r"```{code-block} \1\n:caption: \2", text)


def _lead_to_repository(app: Sphinx, doctree: nodes.document) -> None:
    """MyST takes a link to a file that is no page for a download, and one to a folder for the
    name of something it will look for in vain."""
    page = Path(app.srcdir) / app.env.docname
    for download in list(doctree.findall(addnodes.download_reference)):
        target = page.parent / download["reftarget"]
        download.replace_self(_reference(target, _without_markup(download)))
    for link in list(doctree.findall(addnodes.pending_xref)):
        target = page.parent / link["reftarget"]
        if link["reftype"] == "myst" and target.is_dir():
            link.replace_self(_reference(target, link.children))


def _without_markup(download: nodes.Element) -> Iterator[nodes.Node]:
    for child in download.children:
        if isinstance(child, nodes.literal) and "download" in child["classes"]:
            yield from child.children
        else:
            yield child


def _reference(target: Path, children: Iterable[nodes.Node]) -> nodes.reference:
    path = os.path.relpath(target, ROOT)
    kind = "tree" if target.is_dir() else "blob"
    return nodes.reference(
        "", "", *children, refuri=f"{REPOSITORY}/{kind}/main/{path}", internal=False
    )
