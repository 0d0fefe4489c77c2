"""Escapes foreign text for Python source, file names and log lines: one function for each.

Names and messages come from files and requests that are not trusted. ``kube/models`` and the log
formatter call it, so that a name stays a name and a line one line, whatever is in the text. For
HTML there is ``html.escape``, for a shell ``shlex.quote``; SQL gets values as parameters only.
"""

from __future__ import annotations

import keyword
import re

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]+")
_NOT_IN_FILES = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_FILE = 120
_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Characters that end a line, move a terminal's cursor, or change the direction of text."""


def python_class_name(text: str) -> str:
    """Return a class name; the text itself if it is one."""
    name = _NOT_IN_NAMES.sub("_", text).strip("_") or "Unnamed"
    if name[0].isdigit():
        name = f"Kind{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


def file_name(text: str) -> str:
    """Return a file name without path: it cannot leave its folder, and is not hidden."""
    return _NOT_IN_FILES.sub("_", text).lstrip(".")[:_LONGEST_FILE] or "_"


def log_line(text: str) -> str:
    """Return one line of a log, without characters that a terminal interprets."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
