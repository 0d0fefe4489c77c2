"""The checker of histories: it accepts what one object could have answered, and nothing else."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.soak.history import Answer, Operation, State, Verb, contradiction

DONE, ABSENT, CONFLICT, NONE = Answer.DONE, Answer.ABSENT, Answer.CONFLICT, Answer.NONE
READ, CREATE, SET, SWAP, DELETE = Verb.READ, Verb.CREATE, Verb.SET, Verb.SWAP, Verb.DELETE


def did(verb: Verb, began: float, ended: float, token: State = None, **more: str) -> Operation:
    return Operation(verb, DONE, began, ended, token, **more)


GOOD = {
    "one after the other": [did(CREATE, 0, 1, "a"), did(READ, 2, 3, "a"), did(DELETE, 4, 5)],
    "a read beside a write sees either": [
        did(CREATE, 0, 1, "a"), did(SET, 2, 9, "b"), did(READ, 3, 4, "a"), did(READ, 5, 6, "b")],
    "a write without an answer happens late": [
        did(CREATE, 0, 1, "a"), Operation(SET, NONE, 2, token="b"), did(READ, 3, 4, "a"),
        did(READ, 90, 91, "b")],
    "or never": [did(CREATE, 0, 1, "a"), Operation(SET, NONE, 2, token="b"), did(READ, 3, 4, "a")],
    "a conflict is right where another was faster": [
        did(CREATE, 0, 1, "a"), did(SET, 2, 5, "b"),
        Operation(SWAP, CONFLICT, 3, 6, "c", expected="a"), did(READ, 7, 8, "b")],
    "what is gone is not found": [
        did(CREATE, 0, 1, "a"), did(DELETE, 2, 3), Operation(READ, ABSENT, 4, 5),
        Operation(SET, ABSENT, 6, 7, "b"), did(CREATE, 8, 9, "c")],
}  # fmt: skip
BAD = {
    "a stale read": [did(CREATE, 0, 1, "a"), did(SET, 2, 3, "b"), did(READ, 4, 5, "a")],
    "a lost write": [
        did(CREATE, 0, 1, "a"), did(SET, 2, 3, "b"), Operation(READ, ABSENT, 4, 5)],
    "back in time": [
        did(CREATE, 0, 1, "a"), did(SET, 2, 9, "b"), did(READ, 3, 4, "b"), did(READ, 5, 6, "a")],
    "two swaps from one value": [
        did(CREATE, 0, 1, "a"), did(SWAP, 2, 5, "b", expected="a"),
        did(SWAP, 3, 6, "c", expected="a")],
    "created twice": [did(CREATE, 0, 1, "a"), did(CREATE, 2, 3, "b")],
    "a conflict with nobody": [
        did(CREATE, 0, 1, "a"), Operation(SWAP, CONFLICT, 2, 3, "b", expected="a")],
    "from nowhere": [did(CREATE, 0, 1, "a"), did(READ, 2, 3, "z")],
    "a ghost": [did(CREATE, 0, 1, "a"), did(DELETE, 2, 3), did(READ, 4, 5, "a")],
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_accepted(name: str) -> None:
    assert contradiction(GOOD[name]) is None


@pytest.mark.parametrize("name", BAD)
def test_refused(name: str) -> None:
    assert contradiction(BAD[name]) is not None


def lived(chance: Random, length: int, states: list[State] | None = None) -> list[Operation]:
    """Operations on a real register, each somewhere within its interval; some lose their answer.
    ``states`` gets what it went through."""
    state: State = None
    history = []
    for moment in range(length):
        began = moment - chance.random() * 6
        ended = moment + chance.random() * 6
        verb = chance.choice(list(Verb))
        token: State = f"t{moment}"
        expected = chance.choice((state, "t0"))
        answer, result = DONE, token
        if verb is READ:
            answer, token, result = (ABSENT, None, None) if state is None else (DONE, state, state)
        elif verb is CREATE:
            answer, result = (DONE, token) if state is None else (CONFLICT, state)
        elif state is None:
            answer, result = ABSENT, None
        elif verb is SWAP and state != expected:
            answer, result = CONFLICT, state
        elif verb is DELETE:
            result = None
        if verb is not READ and chance.random() < 0.05:
            answer, ended = NONE, float("inf")
        history.append(Operation(verb, answer, began, ended, token, expected))
        if result != state and states is not None:
            states.append(result)
        state = result
    return history


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 120))
def test_a_linearizable_history_of_one_object_is_accepted(seed: int, length: int) -> None:
    chance = Random(seed)
    history = lived(chance, length)
    chance.shuffle(history)
    assert contradiction(history) is None


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_a_read_of_what_was_overwritten_long_ago_is_refused(seed: int) -> None:
    history = lived(Random(seed), 60)
    written = [each.token for each in history if each.answer is DONE and each.verb is SET]
    late = max(each.began for each in history) + 100
    absent = Operation(READ, ABSENT, late, late + 1)
    if written and contradiction([*history, absent]) is None:
        ghost = did(READ, late + 2, late + 3, written[0])
        assert contradiction([*history, absent, ghost]) is not None


def test_a_write_that_no_watcher_saw_is_rejected() -> None:
    unanswered = [Operation(SET, NONE, 2, token=f"b{at}") for at in range(40)]
    history = [did(CREATE, 0, 1, "a"), *unanswered, did(READ, 3, 4, "b7"), did(READ, 5, 6, "b7")]
    assert contradiction(history, ["a", "b7"]) is None
    assert contradiction(history, ["a"]) is not None


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_many_writes_without_an_answer_do_not_confuse_it(seed: int) -> None:
    chance = Random(seed)
    states: list[State] = []
    history = lived(chance, 80, states)
    lost = [
        Operation(chance.choice((SET, SWAP)), NONE, each.began, token=f"lost{at}", expected="t0")
        for at, each in enumerate(history[::2])
    ]
    assert contradiction([*history, *lost], states) is None
