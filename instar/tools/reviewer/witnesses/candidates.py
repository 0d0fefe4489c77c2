"""Candidate values for a place where two schemas differ: values at the limits of either schema.

Takes the node that must accept the value and the node that must reject it, and yields candidates,
small ones first. ``search.py`` tries each of them under both CRDs, because a candidate may satisfy
neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from instar.base.json_values import copy_json
from instar.kube.schema.formats.named import canonical
from instar.kube.schema.validation.pattern_automata import differing_texts, sample_texts
from instar.tools.reviewer.types import admitted_types
from instar.tools.reviewer.witnesses.samples import Samples, numbers, strings, without_member
from instar.tools.reviewer.witnesses.texts import FORMAT_TEXTS, LONGEST, matching, text_of_length

Node = Mapping[str, Any]

UNKNOWN = "unknownField"
_TEXTS = ("", "a", "A", "0", "-", "a b", "a.b", "a_b", "A-B", "/a", "a/", "é", "not-a-format", "*")
_LITERAL = re.compile(r"'((?:\\.|[^'\\])*)'|\"((?:\\.|[^\"\\])*)\"")
_MATCHES = re.compile(
    r"""matches\(\s*(?:[\w.]+\s*,\s*)?([rR]?)(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)")"""
)
_MOST_DIFFERING = 4
_NUMBER = re.compile(r"(?<![\w.'\"])-?\d+(?:\.\d+)?(?![\w'\"])")


def candidates(
    samples: Samples,
    accepting: Node,
    refusing: Node,
    expression: str = "",
    members: tuple[str, ...] = (),
) -> Iterator[Any]:
    """Yield candidate values. ``expression`` is the CEL rule of the finding, ``members`` are its
    fields.
    """
    kinds = admitted_types(accepting)
    yield samples.minimal(accepting)
    if accepting.get("nullable") or refusing.get("nullable"):
        yield None
    yield from accepting.get("enum") or ()
    if "string" in kinds:
        yield from _texts(accepting, refusing, expression)
    if kinds & {"integer", "number"}:
        yield from _numbers(accepting, refusing, expression)
    if "boolean" in kinds:
        yield from (False, True)
    if "array" in kinds:
        yield from _lists(samples, accepting, refusing, expression)
    if "object" in kinds:
        yield from _objects(samples, accepting, refusing, expression, members)


def _texts(accepting: Node, refusing: Node, expression: str) -> Iterator[str]:
    yield from _by_automata(accepting, refusing, expression)
    yield from strings(accepting)
    pattern = accepting.get("pattern")
    for length in sorted(_lengths(accepting, refusing, "Length")):
        yield text_of_length(length)
        if pattern:
            yield from islice(matching(str(pattern), least=length), 3)
    if pattern:
        yield from matching(str(pattern))
    for side in (accepting, refusing):
        yield from FORMAT_TEXTS.get(canonical(str(side.get("format") or "")), ())
    yield from literals(expression)
    yield from _TEXTS


def _by_automata(accepting: Node, refusing: Node, expression: str) -> Iterator[str]:
    """Yield texts that match the patterns of one side and not those of the other.

    The argument of ``matches()`` in a CEL rule is a pattern, too.
    """
    accepted = [str(accepting["pattern"])] if accepting.get("pattern") else []
    low, high = int(accepting.get("minLength") or 0), accepting.get("maxLength")
    refused = refusing.get("pattern")
    if refused and [refused] != accepted:
        yield from islice(
            differing_texts(accepted, str(refused), least=low, most=high), _MOST_DIFFERING
        )
    written = [
        pattern
        for rule in accepting.get("x-kubernetes-validations") or ()
        for pattern in _matched(str(rule.get("rule") or ""))
    ]
    for pattern in _matched(expression):
        for known in ([*accepted, *written], accepted):
            yield from islice(
                differing_texts(known, pattern, least=low, most=high), _MOST_DIFFERING
            )
        for other in written:
            known = [*accepted, pattern]
            yield from islice(differing_texts(known, other, least=low, most=high), _MOST_DIFFERING)
        yield from islice(sample_texts(pattern), _MOST_DIFFERING)


def _matched(expression: str) -> list[str]:
    """Return the patterns that a CEL expression passes to ``matches``."""
    found = []
    for raw, single, double in _MATCHES.findall(expression):
        text = single or double
        found.append(text if raw else text.replace("\\\\", "\\"))
    return found


def _numbers(accepting: Node, refusing: Node, expression: str) -> Iterator[float]:
    yield from numbers(accepting)
    edges: list[float] = []
    for side in (accepting, refusing):
        for name in ("minimum", "maximum", "multipleOf"):
            edge = side.get(name)
            if isinstance(edge, (int, float)):
                edges += [edge, edge + 1, edge - 1, edge + 0.5, edge - 0.5]
    edges += [0, 1, -1, 2, 0.5, 2**31, -(2**31) - 1, 2**53]
    for text in _NUMBER.findall(expression):
        named = float(text) if "." in text else int(text)
        edges += [named, named + 1, named - 1]
    for edge in edges:
        yield int(edge) if float(edge).is_integer() else edge


def _lengths(accepting: Node, refusing: Node, word: str) -> set[int]:
    """Return sizes just inside and just outside every bound of either side."""
    found: set[int] = set()
    for side in (accepting, refusing):
        low, high = side.get(f"min{word}"), side.get(f"max{word}")
        found |= {int(low) - 1, int(low)} if low is not None else set()
        found |= {int(high), int(high) + 1} if high is not None else set()
    return {size for size in found if 0 <= size <= LONGEST}


def _lists(
    samples: Samples, accepting: Node, refusing: Node, expression: str
) -> Iterator[list[Any]]:
    bounds = set() if "self" in expression else _lengths(accepting, refusing, "Items")
    for length in sorted(bounds | {0, 1, 2}):
        yield samples.small_list(accepting, length)
    items = accepting.get("items")
    if not isinstance(items, Mapping):
        return
    one = samples.minimal(items)
    yield [one, copy_json(one)]
    yield from _duplicate_pairs(samples, accepting, refusing, items)
    if expression:
        for item in islice(candidates(samples, items, items, expression), 150):
            yield [item]
            yield [item, copy_json(item)]


def _duplicate_pairs(
    samples: Samples, accepting: Node, refusing: Node, items: Node
) -> Iterator[list[Any]]:
    """Yield lists of two items that are distinct for the accepting side and equal for the refusing
    one.
    """
    keys = refusing.get("x-kubernetes-list-map-keys") or []
    properties = items.get("properties") or {}
    for name, child in properties.items():
        if name in keys:
            continue
        values = samples.distinct(child, 2)
        if len(values) == 2:
            base = samples.minimal(items)
            fixed = {key: samples.minimal(properties[key]) for key in keys if key in properties}
            yield [{**base, **fixed, name: value} for value in values]


def _objects(
    samples: Samples, accepting: Node, refusing: Node, expression: str, members: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    base = samples.small_object(accepting)
    yield base
    for name in members:
        if name in base:
            yield without_member(base, name)
    yield {**base, UNKNOWN: "a"}
    yield {**base, UNKNOWN: {"a": "b"}}
    for size in sorted(_lengths(accepting, refusing, "Properties") | {1, 2}):
        if size > len(base):
            yield {**base, **samples.members(accepting, size - len(base), base)}
        else:
            yield dict(islice(base.items(), size))
    free = accepting.get("additionalProperties")
    if isinstance(free, Mapping):
        for value in islice(candidates(samples, free, free, expression), 12):
            yield {**base, "key": value}
    if accepting.get("x-kubernetes-preserve-unknown-fields") or accepting.get("type") is None:
        for name, child in (refusing.get("properties") or {}).items():
            for value in ("a", 0, False, [], {}, samples.minimal(child)):
                yield {**base, name: value}
    yield {**base, "apiVersion": "v1", "kind": "Thing"}
    yield {**base, "apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}}
    yield from _with_members(samples, accepting, base, expression, members)


def _with_members(
    samples: Samples, node: Node, base: dict[str, Any], expression: str, members: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """Yield objects with one, then two members; the members that the finding names come first."""
    properties: Mapping[str, Node] = node.get("properties") or {}
    named = sorted(name for name in properties if name in members or name in expression)
    names = named[:10] or sorted(properties)[:20]
    ways = {name: list(_member_values(samples, properties[name], expression)) for name in names}
    for name in names:
        for value in ways[name]:
            yield {**base, name: value}
    for first in names[:8]:
        for second in names[:8]:
            if first < second:
                for one in ways[first][:10]:
                    for other in ways[second][:10]:
                        yield {**base, first: one, second: other}
    if named:
        yield {**base, **{name: ways[name][0] for name in named if ways.get(name)}}


def _member_values(samples: Samples, node: Node, expression: str) -> Iterator[Any]:
    """Return a few values of one member."""
    if node.get("enum"):
        yield from node["enum"][:8]
        return
    if expression and node.get("type") == "string":
        yield from islice((text for text in literals(expression) if samples.fits(node, text)), 24)
    seen: list[Any] = []
    for value in islice(
        candidates(samples, node, node, expression if len(expression) < 2000 else ""), 60
    ):
        if value not in seen and not (isinstance(value, str) and len(value) > 100):
            seen.append(value)
            yield value
        if len(seen) >= (12 if expression else 8):
            return


def literals(expression: str) -> Iterator[str]:
    """Return the string constants of a CEL expression, as candidates for compared values."""
    for single, double in _LITERAL.findall(expression):
        text = single or double
        yield text
        if text:
            yield from (f"{text}a", f"/{text}", f"/a{text}", f"a{text}a", f"/a{text}a")
