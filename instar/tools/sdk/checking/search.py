"""Searches for objects on which a converter breaks a law of conversion, such as a lossless round
trip: directed inputs (built around values at which converters break) first, then random ones.

``instar check``, ``instar.testing`` and the console call ``check``; ``admission.py`` calls
``check_laws``. ``minimise.py`` minimises counterexamples; ``report.py`` holds the results.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.errors import Flaky, Unsatisfiable

from instar.base.json_values import Object
from instar.kube.api.crd import Crd
from instar.kube.schema.generation.objects import objects
from instar.tools.sdk.checking.case import CheckCase, VersionSchema
from instar.tools.sdk.checking.determinism import judge_determinism
from instar.tools.sdk.checking.directed_inputs import DirectedInputs
from instar.tools.sdk.checking.laws import (
    DETERMINISTIC,
    LAWS,
    Inapplicable,
    Law,
    LawBroken,
    VersionPair,
)
from instar.tools.sdk.checking.minimise import minimise
from instar.tools.sdk.checking.parts import removable, without_paths
from instar.tools.sdk.checking.report import CheckReport, Counterexample, LawResult
from instar.tools.sdk.ruleset import Loss

DEFAULT_EXAMPLES = 200
_FEWEST_DIRECTED = 60
_RANDOM_SHARE = 5
"""One in so many of the examples asked for is random after directed ones; else all are."""
Progress = Callable[[LawResult], None]


def check(
    case: CheckCase,
    *,
    converter: str = "",
    laws: Sequence[Law] = LAWS,
    examples: int = DEFAULT_EXAMPLES,
    seed: int | None = None,
    losses: tuple[Loss, ...] = (),
    real: dict[str, list[Object]] | None = None,
    progress: Progress = lambda outcome: None,
) -> CheckReport:
    """Check every law in every direction. The same seed finds the same counterexamples.

    ``real`` are objects of users by version; they are tried first, and their values in others.
    """
    chosen = seed if seed is not None else random.SystemRandom().randrange(2**32)
    report = CheckReport(case.crd.name, converter, chosen, losses=losses)
    code = getattr(case.responder, "code", None)
    directed = DirectedInputs(case, most=most_directed_objects(examples), code=code, real=real)
    for outcome in _outcomes(case, laws, examples, chosen, directed):
        report.outcomes.append(outcome)
        progress(outcome)
    report.outcomes.sort(key=_reading_order(case))
    return report


def most_directed_objects(examples: int) -> int:
    """Return the number of directed objects per version: more than random ones, as they
    find more.
    """
    return max(2 * examples, _FEWEST_DIRECTED)


def _reading_order(case: CheckCase) -> Callable[[LawResult], tuple[int, int]]:
    pairs, names = case.pairs(), [law.name for law in LAWS]

    def key(outcome: LawResult) -> tuple[int, int]:
        return pairs.index((outcome.source, outcome.target)), names.index(outcome.law)

    return key


def _outcomes(
    case: CheckCase, laws: Sequence[Law], examples: int, seed: int, directed: DirectedInputs
) -> Iterator[LawResult]:
    pairs = [
        VersionPair(case, case.versions[source], case.versions[target])
        for source, target in case.pairs()
    ]
    settled = _judge_determinism(pairs, laws, directed)
    for pair in pairs:
        known = settled.get((pair.source.name, pair.target.name))
        if known is not None:
            yield known
        left = [law for law in laws if known is None or law.name != known.law]
        for group in _groups(left):
            yield from check_laws(pair, group, examples=examples, seed=seed, directed=directed)


def _judge_determinism(
    pairs: Sequence[VersionPair], laws: Sequence[Law], directed: DirectedInputs
) -> dict[tuple[str, str], LawResult]:
    """Check the deterministic law by direction; it is not checked with random objects."""
    law = next((each for each in laws if each.name == DETERMINISTIC), None)
    if law is None or not pairs:
        return {}
    began = time.perf_counter()
    importable = str(getattr(pairs[0].case.responder, "importable", ""))
    given = [(pair, directed.objects(pair.source)) for pair in pairs]
    results = judge_determinism(given, importable)
    seconds = (time.perf_counter() - began) / len(pairs)
    found = {}
    for (pair, tried), result in zip(given, results, strict=True):
        if not tried:
            continue  # left to random objects
        names = (pair.source.name, pair.target.name)
        found[names] = LawResult(
            law.name, law.title, *names, result.tested, seconds, result.counterexample, result.note
        )
    return found


def _groups(laws: Sequence[Law]) -> list[list[Law]]:
    """Group laws that take the same inputs, because generating objects takes most of the time."""
    groups: dict[tuple[str, ...], list[Law]] = {}
    for law in laws:
        groups.setdefault(law.inputs, []).append(law)
    return list(groups.values())


def check_laws(
    pair: VersionPair,
    laws: Sequence[Law],
    *,
    examples: int,
    seed: int,
    directed: DirectedInputs | None = None,
) -> Iterator[LawResult]:
    """Check laws with the same inputs in one direction; a broken law is not checked further."""
    remaining = list(laws)
    tested = dict.fromkeys((law.name for law in laws), 0)
    if directed is not None:
        yield from _hunt_directed(pair, remaining, tested, directed)
    while remaining:
        began = time.perf_counter()
        hunter = _Hunter(pair, remaining)
        directed_objects = min(tested[law.name] for law in remaining) * len(remaining[0].inputs)
        number = _random_number(examples, directed_objects)
        note = _run(hunter, _inputs(pair, remaining[0]), number, seed)
        finished = [hunter.caught[0]] if hunter.caught else list(remaining)
        seconds = (time.perf_counter() - began) / len(finished)
        for law in finished:
            example = _counterexample(pair, hunter) if hunter.caught else None
            names = (pair.source.name, pair.target.name)
            total = tested[law.name] + hunter.tested[law.name]
            said = "" if total else note
            yield LawResult(law.name, law.title, *names, total, seconds, example, said)
            remaining.remove(law)


def _random_number(examples: int, directed: int) -> int:
    """Return the number of random objects: few after many directed ones, because they are
    slower.
    """
    share = max(examples // _RANDOM_SHARE, 1)
    return share if directed >= share else examples


def _hunt_directed(
    pair: VersionPair, remaining: list[Law], tested: dict[str, int], directed: DirectedInputs
) -> Iterator[LawResult]:
    """Yield the broken laws and remove them from ``remaining``; count in ``tested``."""
    began = time.perf_counter()
    wanted = remaining[0].inputs
    for inputs in directed.inputs(pair, wanted):
        for law in list(remaining):
            try:
                law.check(pair, inputs)
            except Inapplicable:
                continue
            except LawBroken as broken:
                smaller, told = _minimised(pair, law, inputs, broken)
                example = Counterexample(told.message, smaller, told.steps, told.found)
                seconds = time.perf_counter() - began
                names = (pair.source.name, pair.target.name)
                number = tested[law.name] + 1
                yield LawResult(law.name, law.title, *names, number, seconds, example)
                remaining.remove(law)
            else:
                tested[law.name] += 1
        if not remaining:
            return


def _minimised(
    pair: VersionPair, law: Law, inputs: list[Object], broken: LawBroken
) -> tuple[list[Object], LawBroken]:
    try:
        return minimise(pair, law, inputs)
    except ValueError:  # broken only that once
        return inputs, broken


class _Hunter:
    """Checks inputs by several laws until one breaks, and from then on by that law only."""

    def __init__(self, pair: VersionPair, laws: Sequence[Law]) -> None:
        self._pair, self._laws = pair, laws
        self.tested = dict.fromkeys((law.name for law in laws), 0)
        self.caught: tuple[Law, list[Object], LawBroken] | None = None

    def judge(self, inputs: list[Object]) -> bool:
        """Return whether the inputs tested a law at all. Raises ``LawBroken``."""
        told = False
        for law in [self.caught[0]] if self.caught else self._laws:
            try:
                law.check(self._pair, inputs)
            except Inapplicable:
                continue
            except LawBroken as broken:
                self.caught = law, inputs, broken
                self.tested[law.name] += 1
                raise
            told = True
            self.tested[law.name] += 1
        return told


def _run(hunter: _Hunter, inputs: Any, examples: int, seed: int) -> str:
    """Run hypothesis; return a note if there was nothing to check. The hunter has the
    broken law.
    """

    def judge(drawn: list[Object]) -> None:
        if not hunter.judge(drawn):
            reject()

    configured = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        print_blob=False,
        report_multiple_bugs=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    give: Any = given(inputs)
    try:
        configured(seeded(seed)(give(judge)))()
    except (LawBroken, Flaky):
        return ""
    except Unsatisfiable:
        return "no object could be made that is valid and says anything about this law"
    return ""


def _counterexample(pair: VersionPair, hunter: _Hunter) -> Counterexample | None:
    if hunter.caught is None:
        return None
    law, inputs, broken = hunter.caught
    try:
        inputs, broken = minimise(pair, law, inputs)
    except ValueError:
        # It broke the law once and does not any more: that is worth telling as it was.
        broken.message += " (but not every time)"
    return Counterexample(broken.message, inputs, broken.steps, broken.found)


def _inputs(pair: VersionPair, law: Law) -> Any:
    sources = admitted_objects(pair.case.crd, pair.source)
    targets = admitted_objects(pair.case.crd, pair.target)
    schema = pair.source.compiled.structural

    @st.composite
    def build(draw: Callable[[Any], Any]) -> list[Object]:
        inputs: list[Object] = []
        for wanted in law.inputs:
            if wanted == "part":
                inputs.append(_part(draw, inputs[0], schema))
            else:
                inputs.append(draw(sources if wanted == "source" else targets))
        return inputs

    return build()


def _part(draw: Callable[[Any], Any], whole: Object, schema: Any) -> Object:
    fields = removable(whole, schema)
    if not fields:
        return whole
    chosen = draw(st.lists(st.sampled_from(fields), min_size=1, unique=True))
    return without_paths(whole, chosen)


def admitted_objects(crd: Crd, version: VersionSchema) -> Any:
    """Return a strategy of valid objects of ``version``, as a server would store them."""
    made = objects(
        version.compiled.structural,
        api_version=version.api_version,
        kind=crd.names.kind,
        namespaced=crd.namespaced,
    )
    return made.map(version.admit).filter(lambda obj: obj is not None)
