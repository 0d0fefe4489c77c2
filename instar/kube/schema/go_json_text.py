"""JSON text as Go's encoder writes it, for values quoted inside validation messages.

Called by ``validation/scalars.py``.
"""

from __future__ import annotations

import json
from typing import Any

from instar.base.field_errors import go_float
from instar.kube.schema.json_types import in_key_order


def go_json(value: Any) -> str:
    """Encode with sorted keys, no spaces, and floats without a needless fraction."""
    return json.dumps(
        _plain_numbers(in_key_order(value)), separators=(",", ":"), ensure_ascii=False
    )


def _plain_numbers(value: Any) -> Any:
    if type(value) is dict:
        return {name: _plain_numbers(item) for name, item in value.items()}
    if type(value) is list:
        return [_plain_numbers(item) for item in value]
    if type(value) is float and go_float(value).lstrip("-").isdigit():
        return int(value)
    return value
