"""Finds example updates for CEL transition rules: an update of one object that the new CRD refuses.

``search.py`` calls it. A rule that uses ``oldSelf`` is evaluated on updates only, so the evidence
needs an old and a new object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from instar.base.json_values import Object, same_json
from instar.kube.schema.rule_engine import Program
from instar.tools.reviewer.report import Effect, Witness
from instar.tools.reviewer.server_model import CrdSimulator
from instar.tools.reviewer.witnesses.candidates import candidates
from instar.tools.reviewer.witnesses.samples import Samples

_MOST_VALUES = 40

Place = Callable[[Any], Iterator[Object]]
"""Builds whole objects around one value, which the base CRD accepts."""


def update_witness(
    node: Mapping[str, Any],
    rule: Program,
    text: str,
    base: CrdSimulator,
    other: CrdSimulator,
    place: Place,
    samples: Samples,
) -> Witness | None:
    """Return an update that the base accepts and the other refuses; both states can be created."""
    for before, after in _pairs(node, rule, text, samples):
        for first in place(before):
            for second in place(after):
                found = _confirmed(first, second, base, other)
                if found is not None:
                    return found
    return None


def _pairs(
    node: Mapping[str, Any], rule: Program, text: str, samples: Samples
) -> Iterator[tuple[Any, Any]]:
    values: list[Any] = []
    for value in islice(candidates(samples, node, node, text), 4 * _MOST_VALUES):
        fresh = value is not None and not any(same_json(value, known) for known in values)
        if fresh and len(values) < _MOST_VALUES and samples.fits(node, value):
            values.append(value)
    for before in values[:12]:
        for after in values:
            if not same_json(before, after) and rule.evaluate(after, before).errors:
                yield before, after


def _confirmed(
    first: Object, second: Object, base: CrdSimulator, other: CrdSimulator
) -> Witness | None:
    taken, refused = base.update(first, second), other.update(first, second)
    if not taken.accepted or refused.accepted:
        return None
    apart = base.has_status or other.has_status
    return Witness(
        Effect.REFUSED,
        base.version,
        second,
        taken,
        refused,
        before=first,
        through_status=apart and not same_json(first.get("status"), second.get("status")),
    )
