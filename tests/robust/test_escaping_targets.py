"""Foreign text stays text in every target, judged by a parser of that target: bash, an HTML parser,
an XML parser, a Markdown parser, JSON and SQLite."""

from __future__ import annotations

import json
import shlex
import sqlite3
import subprocess
import unicodedata
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from instar.base import escaping
from instar.tools.reviewer.render.github import annotation

BREAKOUTS = (
    "$(touch /tmp/pwned)",
    "`id`",
    "'; rm -rf ~; '",
    '"><script>alert(1)</script>',
    "</pre><img src=x onerror=alert(1)>",
    "]]><x/>",
    "a | b\n| c | d |",
    "`` ` ``",
    "```\n# heading\n```",
    "[text](javascript:alert(1))",
    "![x](https://example.com/x.png)",
    "<!-- -->",
    "@everyone",
    "# heading",
    "1. item",
    "- item",
    "> quote",
    "    code",
    "**bold** _em_ ~~gone~~",
    "a\\",
    "\\|",
    "::error::x\n::set-output name=a::b",
    "%0A::error::x",
    "\x1b[2J",
    "\u202eabc",
    "\x00",
    "\ud800",
    "&lt;b&gt;",
    "| --- |\n| --- |",
    "$$x$$",
    "&#60;script&#62;",
)
TEXTS = st.one_of(
    st.sampled_from(BREAKOUTS),
    st.text(st.characters(blacklist_categories=["Cs"]), max_size=30),
    st.text("`|\\*_[]()<>&#-+.!~@$'\"\n\r\t :=1a", max_size=20),
    st.lists(st.sampled_from(BREAKOUTS), min_size=2, max_size=3).map("".join),
)


@given(TEXTS)
def test_a_word_of_a_command_is_one_word(text: str) -> None:
    word = escaping.shell_word(text)

    assert not any(char < " " or "\x7f" <= char <= "\x9f" for char in word)
    if not word.startswith("$'"):
        assert shlex.split(f"echo {word} end") == ["echo", text, "end"]


@settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))
@given(st.lists(TEXTS, min_size=1, max_size=20))
def test_bash_sees_the_words_as_they_were(texts: list[str]) -> None:
    command = "printf '%s\\0' " + " ".join(map(escaping.shell_word, texts))

    found = subprocess.run(
        ["bash", "-c", command], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    ).stdout

    def expected(text: str) -> str:
        return "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in text)

    shown = [part.decode() for part in found.split(b"\0")[:-1]]
    assert shown == [text if _is_plain(text) else expected(text) for text in texts]


def _is_plain(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.seen: list[Any] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, attrs))

    def handle_endtag(self, tag: str) -> None:
        self.seen.append(f"/{tag}")

    def handle_comment(self, data: str) -> None:
        self.seen.append("comment")

    def handle_data(self, data: str) -> None:
        self.text += data


@given(TEXTS)
def test_html_has_no_tag_and_no_attribute_more(text: str) -> None:
    escaped = escaping.html_text(text)
    parser = Tags()
    parser.feed(f'<p title="{escaped}">{escaped}</p>')
    parser.close()

    [(tag, attributes), end] = parser.seen
    assert (tag, end) == ("p", "/p")
    assert [name for name, _ in attributes] == ["title"]


@given(TEXTS, TEXTS)
def test_any_text_makes_a_document_that_xml_parsers_read(name: str, text: str) -> None:
    root = ElementTree.Element("testsuites", name=name)
    ElementTree.SubElement(root, "testcase", classname=text).text = text

    parsed = ElementTree.fromstring(escaping.xml_document(root))

    assert [node.tag for node in parsed.iter()] == ["testsuites", "testcase"]
    assert list(parsed.attrib) == ["name"]


markdown_it = pytest.importorskip("markdown_it")
INLINE = {"text", "text_special", "html_inline", "softbreak"}


def _parsed(source: str) -> Any:
    return markdown_it.MarkdownIt("gfm-like", {"linkify": False}).parse(source)


@settings(deadline=None)
@given(TEXTS)
def test_a_cell_of_markdown_is_one_cell_of_text(text: str) -> None:
    cell = escaping.markdown_text(text)
    tokens = _parsed(f"| a | b |\n| --- | --- |\n| {cell} | end |\n")

    assert [token.type for token in tokens].count("td_open") == 2
    assert tokens[-1].type == "table_close"
    inline = [token for token in tokens if token.type == "inline"]
    assert inline[-1].content == "end"
    kinds = {child.type for child in inline[2].children}
    assert kinds <= INLINE
    comments = [each.content for each in inline[2].children if each.type == "html_inline"]
    assert set(comments) <= {"<!-- -->"}  # keeps a mention from being one


@settings(deadline=None)
@given(TEXTS)
def test_an_item_of_markdown_is_one_paragraph_of_text(text: str) -> None:
    tokens = _parsed(f"- {escaping.markdown_text(text)}\n\nend\n")

    blocks = {token.type for token in tokens}
    assert blocks <= {
        *("bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close"),
        *("paragraph_open", "paragraph_close", "inline"),
    }
    inlines = [token for token in tokens if token.type == "inline"]
    assert inlines[-1].content == "end"
    assert {child.type for token in inlines for child in token.children} <= INLINE


@settings(deadline=None)
@given(TEXTS)
def test_code_in_a_cell_is_code_and_nothing_else(text: str) -> None:
    code = escaping.markdown_code(text)
    tokens = _parsed(f"| a | b |\n| --- | --- |\n| {code} | end |\n")

    inline = [token for token in tokens if token.type == "inline"]
    assert [token.type for token in tokens].count("td_open") == 2
    assert inline[-1].content == "end"
    children = inline[2].children
    tags = [child.content for child in children if child.type == "html_inline"]
    assert tags in ([], ["<code>", "</code>"])
    assert {child.type for child in children} <= INLINE | {"code_inline"}


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_a_block_of_code_ends_where_it_should(first: str, second: str) -> None:
    text = f"{first}\n{second}"
    tokens = _parsed(escaping.markdown_block(text, "yaml") + "\n\nend\n")

    assert tokens[0].type == "fence"
    assert [token.content for token in tokens if token.type == "inline"] == ["end"]
    assert len(tokens) == 4


@given(TEXTS, TEXTS, TEXTS)
def test_an_annotation_is_one_workflow_command(title: str, text: str, file: str) -> None:
    line = annotation("error", title=title, text=text, file=file, line=3)

    assert "\n" not in line
    assert "\r" not in line
    properties = line.removeprefix("::error ").partition("::")[0]
    assert properties.count(",") <= 2
    assert ":" not in properties


@given(TEXTS)
def test_a_sarif_message_has_no_link(text: str) -> None:
    assert "](" not in escaping.sarif_text(text)
    assert json.loads(json.dumps(escaping.sarif_text(text))) == escaping.sarif_text(text)


@given(TEXTS)
def test_a_log_line_is_one_line(text: str) -> None:
    shown = escaping.log_line(text)

    assert len(shown.splitlines()) <= 1
    assert not any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in shown)


@given(TEXTS)
def test_sqlite_gets_values_as_parameters(text: str) -> None:
    """The stores have no other way: tests/layout/test_escaping.py looks for one."""
    value = text.encode("utf-8", "replace").decode()
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (key TEXT)")
    connection.execute("INSERT INTO t VALUES (?)", (value,))

    assert connection.execute("SELECT key FROM t WHERE key = ?", (value,)).fetchone() == (value,)
    connection.close()
