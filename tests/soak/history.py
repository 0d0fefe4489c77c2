"""What clients did to one object and were told, and whether one object could have told them so.

An object is a register: it holds the token of the last write, or nothing. A history is
linearizable when every operation can be put at one moment between its call and its answer so that,
done one after the other, all answers are right. An operation without an answer may have happened
at any moment after its call, or never. The search is Wing and Gong's, with a memory of the
configurations it has been in. Where watchers saw which states the object went through, what they
never saw did not happen, and their order is tried first.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from math import inf
from typing import NamedTuple

State = str | None
"""The token an object carries; None where there is no object."""


class Verb(Enum):
    READ = auto()
    CREATE = auto()
    SET = auto()
    """Whatever is there."""
    SWAP = auto()
    """If what is there is what was expected."""
    DELETE = auto()


class Answer(Enum):
    DONE = auto()
    ABSENT = auto()
    """404."""
    CONFLICT = auto()
    """409: it exists already, or is not what was expected."""
    NONE = auto()
    """No answer, or one that promises nothing."""


class Operation(NamedTuple):
    verb: Verb
    answer: Answer
    began: float
    ended: float = inf
    token: State = None
    """Written, or seen by a read."""
    expected: State = None
    """Of a swap."""


def after(state: State, operation: Operation) -> tuple[bool, State]:
    """Whether the answer is right in this state, and the state it leaves."""
    verb, answer = operation.verb, operation.answer
    if verb is Verb.READ:
        seen = None if answer is Answer.ABSENT else operation.token
        return state == seen, state
    fits, result = _effect(state, operation)
    if answer is Answer.DONE:
        return fits, result
    if answer is Answer.ABSENT:
        return state is None and verb is not Verb.CREATE, state
    if answer is Answer.CONFLICT:
        return not fits and state is not None, state
    return True, result if fits else state


def _effect(state: State, operation: Operation) -> tuple[bool, State]:
    match operation.verb:
        case Verb.CREATE:
            return state is None, operation.token
        case Verb.SET:
            return state is not None, operation.token
        case Verb.SWAP:
            return state is not None and state == operation.expected, operation.token
        case _:
            return state is not None, None


_MOST_CONFIGURATIONS = 300_000


class Undecided(AssertionError):
    """The search was given up."""


class Contradiction(NamedTuple):
    """No order explains the history: how far one could get at best, and what was left."""

    explained: int
    stuck: list[Operation]


def contradiction(
    history: Sequence[Operation], seen: Sequence[State] | None = None
) -> Contradiction | None:
    """None where the history is linearizable. ``seen``: the states after each change, in order.
    Raises ``Undecided`` where that would take too long."""
    known = history if seen is None else _happened(history, seen)
    answered = [each for each in known if each.verb is not Verb.READ or each.ended < inf]
    operations = sorted(answered, key=lambda each: each.began)
    wanted = sum(1 << at for at, each in enumerate(operations) if each.ended < inf)
    been: set[tuple[int, State]] = set()
    waiting: list[tuple[int, State, int]] = [(0, None, 0)]
    best, stuck = -1, list[Operation]()
    while waiting:
        done, state, changes = waiting.pop()
        done, candidates = _settled(operations, done, state)
        if done & wanted == wanted:
            return None
        if (done, state) in been:
            continue
        been.add((done, state))
        if len(been) > _MOST_CONFIGURATIONS:
            raise Undecided(f"{len(history)} operations")
        if (done & wanted).bit_count() > best:
            best = (done & wanted).bit_count()
            stuck = [operations[at] for at in candidates]
        followers = []
        for at in candidates:
            fits, result = after(state, operations[at])
            if fits:
                expected = seen is not None and changes < len(seen) and seen[changes] == result
                rank = (not expected, operations[at].ended)
                followers.append((rank, (done | 1 << at, result, changes + (result != state))))
        waiting += [each for _, each in sorted(followers, key=lambda each: each[0], reverse=True)]
    return Contradiction(best, stuck)


def _happened(history: Sequence[Operation], seen: Sequence[State]) -> list[Operation]:
    """Without the writes that got no answer and left no trace."""
    traces = set(seen)
    gone = sum(state is None for state in seen)
    told = sum(each.verb is Verb.DELETE and each.answer is Answer.DONE for each in history)

    def may_have(operation: Operation) -> bool:
        if operation.answer is not Answer.NONE:
            return True
        return gone > told if operation.verb is Verb.DELETE else operation.token in traces

    return [each for each in history if may_have(each)]


def _settled(operations: Sequence[Operation], done: int, state: State) -> tuple[int, list[int]]:
    """What leaves the state as it is and has its answer can be done at once; what may come next."""
    while True:
        candidates = _next(operations, done)
        calm = 0
        for at in candidates:
            fits, result = after(state, operations[at])
            if fits and result == state and operations[at].answer is not Answer.NONE:
                calm |= 1 << at
        if not calm:
            return done, candidates
        done |= calm


def _next(operations: Sequence[Operation], done: int) -> list[int]:
    """Operations that began before the first of those that are left had its answer."""
    at = (~done & (done + 1)).bit_length() - 1  # the first that is not done
    found: list[int] = []
    soonest = inf
    for number in range(at, len(operations)):
        if done >> number & 1:
            continue
        operation = operations[number]
        if operation.began > soonest:
            break
        found.append(number)
        soonest = min(soonest, operation.ended)
    return [number for number in found if operations[number].began <= soonest]
