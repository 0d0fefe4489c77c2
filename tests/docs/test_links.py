"""Links of every page: to files and headings that exist, and outside only in a form that can be
followed. No network is needed, so none is asked."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.pages import DOCS, FENCE, ROOT

PAGES = sorted((*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / ".github").rglob("*.md")))
_LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`[^`\n]*`")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


def links(page: Path) -> list[str]:
    """A link's text may be code; what stands in code is no link."""
    text = FENCE.sub("", page.read_text())
    return _LINK.findall(_CODE.sub("code", text))


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    found: Counter[str] = Counter()
    names = set()
    for heading in _HEADING.findall(FENCE.sub("", page.read_text())):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")
        names.add(f"{name}-{found[name]}" if found[name] else name)
        found[name] += 1
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_links_to_what_exists(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        if "://" in link:
            parts = urlsplit(link)
            assert parts.scheme == "https", link
            assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", parts.netloc), link
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        if anchor and "reference" not in target.parts:  # those are made while the site is built
            assert anchor in anchors(target), link
