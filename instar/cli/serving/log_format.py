"""Log formats of the server: text lines or one JSON object per line, with time zone.

Set up by ``instar serve``.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from instar.base.escaping import log_line

FORMS = ("text", "json")


def set_up_logging(form: str, verbose: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("instar").setLevel(logging.INFO)
    # uvloop warns for every client that disconnects during a response.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    logging.getLogger("instar.access").setLevel(logging.INFO if verbose else logging.WARNING)


class TextLines(logging.Formatter):
    """Formats log records as lines of text with time and level."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        record.message = log_line(record.message)
        return super().formatMessage(record)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802
        return datetime.fromtimestamp(record.created).astimezone().isoformat(" ", "milliseconds")


class JsonLines(logging.Formatter):
    """Formats records as JSON lines; the structured ``fields`` of a record become members."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exc"] = self.formatException(record.exc_info)
        return json.dumps(line)
