"""Automata over the patterns of schemas: texts that some patterns accept and others refuse.

`instar review` asks for a text that the old pattern accepts and the new one refuses; `instar check`
asks for texts that fit a pattern. A pattern becomes a nondeterministic automaton; the search runs
over the product of the deterministic ones, built state by state, shortest text first. Every text is
confirmed with RE2 before it is returned, so an error in an automaton can only hide a text, never
produce a wrong one. As in OpenAPI, a pattern without an anchor may match anywhere in the text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import lru_cache

from instar.base.fast_dataclass import dataclass
from instar.kube.schema.validation.pattern_syntax import (
    ANY,
    Alternatives,
    Anchor,
    Characters,
    Node,
    Ranges,
    Repeat,
    UnsupportedPattern,
    parse_pattern,
)
from instar.kube.schema.validation.patterns import PatternError, compile_pattern

_MOST_STATES = 4000
_MOST_VISITS = 20_000
LONGEST = 1200
_READABLE = "ab1A-./_:z09Z \té~\n"
_SAMPLES, _VARIANTS, _LONG_SAMPLE = 12, 3, 24

State = frozenset[int]


@dataclass(slots=True)
class _Automaton:
    """Edges by state; ``accepting`` is the only final state."""

    free: list[list[int]]
    """Edges that need no character."""
    at_start: list[list[int]]
    at_end: list[list[int]]
    reading: list[list[tuple[Ranges, int]]]
    accepting: int = 0
    alive: frozenset[int] = frozenset()
    """The states from which the final one can be reached."""

    def add(self) -> int:
        if len(self.free) >= _MOST_STATES:
            raise UnsupportedPattern("too many states")
        for edges in (self.free, self.at_start, self.at_end):
            edges.append([])
        self.reading.append([])
        return len(self.free) - 1

    def closure(self, states: Sequence[int] | State, *, start: bool, end: bool) -> State:
        waiting, found = list(states), set(states)
        while waiting:
            state = waiting.pop()
            reached = [*self.free[state]]
            reached += self.at_start[state] if start else []
            reached += self.at_end[state] if end else []
            for each in reached:
                if each not in found:
                    found.add(each)
                    waiting.append(each)
        return frozenset(found & self.alive) if not end else frozenset(found)

    def step(self, states: State, code: int) -> State:
        reached = {
            target
            for state in states
            for ranges, target in self.reading[state]
            if _holds(ranges, code)
        }
        return self.closure(tuple(reached), start=False, end=False)

    def accepts(self, states: State, *, empty: bool) -> bool:
        return self.accepting in self.closure(states, start=empty, end=True)


def _holds(ranges: Ranges, code: int) -> bool:
    return any(low <= code <= high for low, high in ranges)


@lru_cache(maxsize=256)
def _automaton(pattern: str) -> _Automaton | None:
    """Return the automaton of a pattern; None if its syntax is not supported."""
    made = _Automaton([], [], [], [])
    try:
        node = parse_pattern(pattern)
        first = made.add()
        made.reading[first].append((ANY, first))
        last = _build(made, node, first)
        made.accepting = last
        made.reading[last].append((ANY, last))
    except (UnsupportedPattern, ValueError, IndexError, RecursionError):
        return None
    made.alive = _alive(made)
    return made


def _build(made: _Automaton, node: Node, state: int) -> int:
    """Add the node after ``state``; return the state after the node."""
    if isinstance(node, Characters):
        after = made.add()
        made.reading[state].append((node.ranges, after))
        return after
    if isinstance(node, Anchor):
        after = made.add()
        (made.at_end if node.at_end else made.at_start)[state].append(after)
        return after
    if isinstance(node, Alternatives):
        after = made.add()
        for branch in node.branches:
            begin = made.add()
            made.free[state].append(begin)
            made.free[_build(made, branch, begin)].append(after)
        return after
    if isinstance(node, Repeat):
        return _build_repeat(made, node, state)
    for part in node.parts:
        state = _build(made, part, state)
    return state


def _build_repeat(made: _Automaton, node: Repeat, state: int) -> int:
    for _ in range(node.least):
        state = _build(made, node.inner, state)
    after = made.add()
    if node.most is None:
        loop = made.add()
        made.free[state].append(loop)
        made.free[_build(made, node.inner, loop)].append(loop)
        made.free[loop].append(after)
        return after
    made.free[state].append(after)
    for _ in range(node.most - node.least):
        state = _build(made, node.inner, state)
        made.free[state].append(after)
    return after


def _alive(made: _Automaton) -> frozenset[int]:
    before: list[list[int]] = [[] for _ in made.free]
    for state in range(len(made.free)):
        targets = [*made.free[state], *made.at_start[state], *made.at_end[state]]
        for target in (*targets, *(each for _, each in made.reading[state])):
            before[target].append(state)
    found, waiting = {made.accepting}, [made.accepting]
    while waiting:
        for state in before[waiting.pop()]:
            if state not in found:
                found.add(state)
                waiting.append(state)
    return frozenset(found)


def differing_texts(
    accepting: Sequence[str], refusing: str, *, least: int = 0, most: int | None = None
) -> Iterator[str]:
    """Yield texts that all ``accepting`` patterns match and ``refusing`` does not, shortest first.

    Lengths are within ``least`` and ``most``. Nothing comes where no such text exists, where a
    pattern has no automaton here, or where the search would take too long.
    """
    wanted = [_automaton(pattern) for pattern in accepting]
    unwanted = _automaton(refusing)
    known = [each for each in wanted if each is not None]
    if unwanted is None or len(known) < len(wanted):
        return
    longest = LONGEST if most is None else min(most, LONGEST)
    yield from _confirmed(_search(known, [unwanted], least, longest), accepting, [refusing])


@lru_cache(maxsize=256)
def sample_texts(pattern: str) -> tuple[str, ...]:
    """Return a few texts that match the pattern: short ones, a long one, and variants of them."""
    made = _automaton(pattern)
    if made is None:
        return ()
    found = list(_several(_confirmed(_search([made], [], 0, LONGEST), [pattern], [])))
    found += _several(_confirmed(_search([made], [], _LONG_SAMPLE, LONGEST), [pattern], []), 2)
    variants = (text for each in found for text in _variants(made, each))
    return tuple(dict.fromkeys((*found, *_confirmed(variants, [pattern], []))))


def _variants(made: _Automaton, text: str) -> Iterator[str]:
    """Yield the text with each character replaced by another one of its class."""
    starts, ends = _classes([made])
    members = {
        low: [each for each in _READABLE if low <= ord(each) <= high] or [chr(max(low, 1))]
        for low, high in zip(starts, ends, strict=True)
        if not 0xD800 <= low <= 0xDFFF
    }
    for turn in range(1, _VARIANTS + 1):
        changed = []
        for place, character in enumerate(text):
            low = max(start for start in starts if start <= ord(character))
            others = members.get(low, [character])
            changed.append(others[(place + turn) % len(others)])
        yield "".join(changed)


def _several(texts: Iterator[str], most: int = _SAMPLES) -> Iterator[str]:
    for _, text in zip(range(most), texts, strict=False):
        yield text


def _confirmed(
    texts: Iterator[str], accepting: Sequence[str], refusing: Sequence[str]
) -> Iterator[str]:
    try:
        must = [compile_pattern(pattern) for pattern in accepting]
        must_not = [compile_pattern(pattern) for pattern in refusing]
    except PatternError:
        return
    for text in texts:
        if all(found(text) for found in must) and not any(found(text) for found in must_not):
            yield text


def _search(
    wanted: Sequence[_Automaton], unwanted: Sequence[_Automaton], least: int, longest: int
) -> Iterator[str]:
    """Search the product breadth first; a state is left once for each length up to ``least``."""
    machines = (*wanted, *unwanted)
    alphabet = _alphabet(machines)
    start = tuple(each.closure((0,), start=True, end=False) for each in machines)
    waiting: deque[tuple[tuple[State, ...], str]] = deque([(start, "")])
    seen = {(start, 0)}
    while waiting and len(seen) < _MOST_VISITS:
        states, text = waiting.popleft()
        if len(text) >= least and _differs(wanted, unwanted, states, not text):
            yield text
        if len(text) >= longest:
            continue
        for character in alphabet:
            code = ord(character)
            after = tuple(
                each.step(state, code) for each, state in zip(machines, states, strict=True)
            )
            if not all(after[: len(wanted)]):
                continue  # one of the wanted patterns can no longer match
            key = (after, min(len(text) + 1, least))
            if key not in seen or (not unwanted and len(text) < 3):
                seen.add(key)
                waiting.append((after, text + character))


def _differs(
    wanted: Sequence[_Automaton],
    unwanted: Sequence[_Automaton],
    states: tuple[State, ...],
    empty: bool,
) -> bool:
    pairs = list(zip((*wanted, *unwanted), states, strict=True))
    mine, theirs = pairs[: len(wanted)], pairs[len(wanted) :]
    return all(each.accepts(state, empty=empty) for each, state in mine) and not any(
        each.accepts(state, empty=empty) for each, state in theirs
    )


def _alphabet(machines: Sequence[_Automaton]) -> str:
    """Return one character for each class of characters that all automata treat alike."""
    starts, ends = _classes(machines)
    found: dict[str, None] = {}
    for low, high in zip(starts, ends, strict=True):
        readable = next((each for each in _READABLE if low <= ord(each) <= high), None)
        code = low if low > 0 else 1
        if readable is None and 0xD800 <= code <= 0xDFFF:
            continue  # surrogates are no text
        found[readable if readable is not None else chr(code)] = None
    order = {character: place for place, character in enumerate(_READABLE)}
    return "".join(sorted(found, key=lambda each: order.get(each, len(order))))


def _classes(machines: Sequence[_Automaton]) -> tuple[list[int], list[int]]:
    """Return the first and last code points of the classes of characters that all automata treat
    alike."""
    edges = {0}
    for machine in machines:
        for listed in machine.reading:
            for ranges, _ in listed:
                for low, high in ranges:
                    edges |= {low, high + 1}
    starts = sorted(edge for edge in edges if edge <= 0x10FFFF)
    return starts, [*(edge - 1 for edge in starts[1:]), 0x10FFFF]
