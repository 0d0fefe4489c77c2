"""Table printer: computes the cells of ``additionalPrinterColumns`` with upstream's conversion
rules.

``server/rest/responses.py`` uses the printer of a version for Table responses; built-in kinds have
their own printers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from instar.base.field_errors import go_number
from instar.kube.api.crd import PrinterColumn
from instar.kube.api.encoding.json_text import encode_sorted
from instar.kube.api.jsonpath import JsonPathError, JsonPathTooLong, compile_path
from instar.kube.api.jsonpath_steps import Work
from instar.kube.schema.validation.numbers import INT64_MAX, INT64_MIN

NAME_DESCRIPTION = (
    "Name must be unique within a namespace. Is required when creating resources, although some "
    "resources may allow a client to request the generation of an appropriate name automatically. "
    "Name is primarily intended for creation idempotence and configuration definition. Cannot be "
    "updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
AGE_DESCRIPTION = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. "
    "It is not guaranteed to be set in happens-before order across separate operations. Clients "
    "may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the "
    "system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel"
    "/sig-architecture/api-conventions.md#metadata"
)
_AGE = PrinterColumn("Age", "date", ".metadata.creationTimestamp", description=AGE_DESCRIPTION)
_NAME = {
    "name": "Name",
    "type": "string",
    "format": "name",
    "description": NAME_DESCRIPTION,
    "priority": 0,
}

_EXACT_FLOAT = 2**53

Cell = Callable[[dict[str, Any], datetime, Work], Any]


class TablePrinter:
    """The columns of one version: definitions for the header, cells for each object."""

    def __init__(self, columns: Sequence[PrinterColumn]) -> None:
        self.definitions: list[dict[str, Any]] = [_NAME]
        self._cells: list[Cell] = []
        for column in columns or (_AGE,):
            try:
                cell = _cell(column)
            except JsonPathError:
                break  # as upstream, which drops the remaining columns
            self._cells.append(cell)
            self.definitions.append(_definition(column))

    async def detach(self) -> TablePrinter:
        """Return a printer for use in a thread, which reads nothing that may change meanwhile."""
        return self

    def cells(self, obj: dict[str, Any], now: datetime, work: Work | None = None) -> list[Any]:
        """Return the cells of one object. ``work`` is shared by all rows of a response. Raises
        ``TooLargeForLoop``."""
        name = obj.get("metadata", {}).get("name", "")
        work = work or Work()
        work.next_row()
        return [name, *(cell(obj, now, work) for cell in self._cells)]

    def conditions(self, obj: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the conditions of a table row."""
        return []


def age(then: str, now: datetime) -> str:
    """Return the elapsed time as kubectl shows it: ``90s``, ``5m30s``, ``3h15m``, ``3y20d``."""
    try:
        moment = datetime.fromisoformat(then)
    except ValueError:
        return "<invalid>"
    if moment.tzinfo is None:
        return "<invalid>"
    seconds = int((now - moment).total_seconds() // 1)
    return "<invalid>" if seconds < -1 else human_duration(max(seconds, 0))


def human_duration(seconds: int) -> str:
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _pair(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _pair(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 8 * 365:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def utc_now() -> datetime:
    return datetime.now(UTC)


def _definition(column: PrinterColumn) -> dict[str, Any]:
    described = f"Custom resource definition column (in JSONPath format): {column.json_path}"
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description or described,
        "priority": column.priority,
    }


def _cell(column: PrinterColumn) -> Cell:
    try:
        find = compile_path(column.json_path)
    except JsonPathTooLong:
        return _empty
    render = _RENDERERS.get(column.type, _no_cell)

    def cell(obj: dict[str, Any], now: datetime, work: Work) -> Any:
        found = find(obj, work)
        return render(_as_go_reads(found[0]), now) if found else None

    return cell


def _as_go_reads(value: Any) -> Any:
    """Return an integer beyond 64 bits, which stored bytes may hold, as the float that Go reads."""
    if type(value) is int and not INT64_MIN <= value <= INT64_MAX:
        return float(value)
    return value


def _string(value: Any, _: datetime) -> Any:
    if isinstance(value, str):
        return value
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return go_number(value)
    if isinstance(value, dict | list):
        return encode_sorted(value).decode()
    return str(value)


def _integer(value: Any, _: datetime) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    whole = int(value)
    return whole if INT64_MIN <= whole <= INT64_MAX else INT64_MIN


def _number(value: Any, _: datetime) -> Any:
    """Return a float; an integer below 2**53 stays one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) <= _EXACT_FLOAT else float(value)


def _boolean(value: Any, _: datetime) -> Any:
    return value if isinstance(value, bool) else None


def _date(value: Any, now: datetime) -> Any:
    if not isinstance(value, str):
        return None
    return age(value, now) if value and value != "null" else "<unknown>"


def _empty(_: dict[str, Any], __: datetime, ___: Work) -> Any:
    return None


def _no_cell(_: Any, __: datetime) -> Any:
    return None


_RENDERERS: dict[str, Callable[[Any, datetime], Any]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}
