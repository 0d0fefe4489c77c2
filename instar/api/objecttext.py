"""What every reader of a document says when the text is no document."""

from __future__ import annotations

MAX_DEPTH_TEXT = "exceeded max depth"


class Malformed(Exception):
    """The body is not a JSON (or YAML) object; ``str()`` is the parser's sentence."""
