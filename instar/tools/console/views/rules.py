"""View: explanations of the reviewer's rules and of the laws that ``instar check`` tests.

Called by ``tools/console/api.py``.
"""

from __future__ import annotations

from functools import lru_cache

from instar.base.json_values import Object
from instar.tools.reviewer.advice import advice
from instar.tools.reviewer.rules import RULES


@lru_cache(maxsize=1)
def rules() -> Object:
    return {
        "rules": [
            {
                "id": rule.id,
                "severity": rule.severity.value,
                "summary": rule.summary,
                "hits": [hit.value for hit in rule.hits],
                "advice": advice(rule.id),
            }
            for rule in RULES
        ]
    }
