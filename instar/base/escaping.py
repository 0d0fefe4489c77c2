"""Escapes untrusted text for an output format, with one function per format.

Names and messages come from files and requests that are not trusted. The generator of Python code,
the renderers of reports, messages that suggest commands and the log formatter call these functions,
so that no text can break out of the name, the quotes or the line that contains it. SQL gets values
as parameters only, and JSON is written by a JSON encoder.
"""

from __future__ import annotations

import html
import keyword
import re
import shlex
from xml.etree.ElementTree import Element, indent, tostring

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]+")
_NOT_IN_FILES = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_FILE_NAME = 120
"""Characters of a file name; the rest is cut off."""
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Characters that end a line, move a terminal's cursor, or change the direction of text."""
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN_SYNTAX = re.compile(r"[\\`*|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|\](?=[(\[:])")
"""What has a meaning inside a line of Markdown; an underscore inside a word has none."""
_FIRST_IN_MARKDOWN = re.compile(r"^([#+\-=]|\d+(?=[.)]))")
"""What has a meaning at the beginning of a block."""
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 ]")
_LINE_ENDS = re.compile("[\r\n\x0b\x0c\x85\u2028\u2029]+")
_FENCE = re.compile("`{3,}")


def python_class_name(text: str) -> str:
    """Return a class name; the text itself if it is one."""
    name = _NOT_IN_NAMES.sub("_", text).strip("_") or "Unnamed"
    if name[0].isdigit():
        name = f"Kind{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


def file_name(text: str) -> str:
    """Return a file name without path: it has no separators and is not hidden."""
    return _NOT_IN_FILES.sub("_", text).lstrip(".")[:_MAX_FILE_NAME] or "_"


def log_line(text: str) -> str:
    """Return one line of a log, without characters that a terminal interprets."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def shell_word(text: str) -> str:
    """Quote one word of a shell command for a user to copy; a plain name needs no quotes. Control
    characters are written as bash's ``$'…'``, so that a terminal does not act on them."""
    if not _CONTROL.search(text):
        return shlex.quote(text)
    escaped = "".join(map(_ansi_c, text))
    return f"$'{escaped}'"


def _ansi_c(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    if not _CONTROL.match(char):
        return char
    if char == "\x00" or "\ud800" <= char <= "\udfff":
        return "\ufffd"  # no argument of a program can contain it
    return "".join(f"\\x{byte:02x}" for byte in char.encode())


def html_text(text: str) -> str:
    """Return text for HTML, between tags or inside a quoted attribute."""
    return html.escape(_NOT_IN_XML.sub("\ufffd", text), quote=True)


def xml_document(root: Element) -> str:
    """Return an XML document. Characters that XML cannot hold are replaced in the whole tree,
    because the writer escapes all others but writes these as they are."""
    for node in root.iter():
        node.attrib = {name: _xml_text(value) for name, value in node.attrib.items()}
        node.text = None if node.text is None else _xml_text(node.text)
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _xml_text(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", text)


def sarif_text(text: str) -> str:
    """Return a SARIF message: ``[text](target)`` in it would be a link."""
    return text.replace("](", "] (")


def markdown_text(text: str) -> str:
    """Return text for one line of Markdown, also in a table cell, with markup, links, mentions and
    HTML escaped."""
    line = _LINE_ENDS.sub(" ", _NOT_IN_XML.sub("\ufffd", text)).replace("\t", " ").strip()
    escaped = html.escape(_MARKDOWN_SYNTAX.sub(r"\\\g<0>", line), quote=False)
    return _FIRST_IN_MARKDOWN.sub(_character_references, escaped).replace("@", "@<!-- -->")


def _character_references(found: re.Match[str]) -> str:
    return "".join(f"&#{ord(char)};" for char in found[0])


def markdown_code(text: str) -> str:
    """Return a code span for one line of Markdown, also in a table's cell."""
    line = _LINE_ENDS.sub(" ", _NOT_IN_XML.sub("\ufffd", text)).strip()
    if not line:
        return ""
    if "`" in line or "|" in line:  # no span can contain these in a table
        return f"<code>{_NOT_PLAIN.sub(_character_references, line)}</code>"
    return f"`{line}`"


def markdown_block(text: str, language: str = "") -> str:
    """Return a fenced code block; the fence is longer than any in the text."""
    body = _NOT_IN_XML.sub("\ufffd", text)
    longest = max((len(found) for found in _FENCE.findall(body)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{body}\n{fence}"


def workflow_text(text: str) -> str:
    """Return text for the message of a GitHub workflow command (``::error …::``)."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def workflow_property(text: str) -> str:
    """Return the value of a property of a GitHub workflow command."""
    return workflow_text(text).replace(":", "%3A").replace(",", "%2C")
