"""Random histories of CRDs, objects, conversions, kills and lies, on a real etcd.

The two critical cases of data loss are the first examples. ``INSTAR_LOSS_HISTORIES=500
INSTAR_LOSS_SHARDS=3 pytest -n 3 tests/migrator/test_loss_histories.py`` plays five hundred on three
clusters; ``INSTAR_LOSS_CLUSTER`` plays them on a kube-apiserver (``loss_cluster.py``).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.migrator.loss_cluster import LossCluster
from tests.migrator.loss_play import Play
from tests.migrator.loss_subject import History

SHARDS = int(os.environ.get("INSTAR_LOSS_SHARDS", "1"))
HISTORIES = int(os.environ.get("INSTAR_LOSS_HISTORIES", "8")) // SHARDS
SHRINKS = bool(os.environ.get("INSTAR_LOSS_SHRINK"))
ALL_VERSIONS = ("v1alpha1", "v1beta1", "v1")
CONVERSIONS = (
    *("none", "none", "none"),
    *("webhook", "rules", "lossy", "lossy-rules", "liar", "flapping"),
)
STEPS = (
    *("migrate", "keep-going", "keep-going", "accept", "undo", "undo"),
    *("tool-killed", "server-killed", "raced", "flipped-midway", "remove", "upgrade"),
    *("lie", "by-hand", "bad", "flip", "edit", "delete"),
)
histories = st.builds(
    History,
    conversion=st.sampled_from(CONVERSIONS),
    default=st.sampled_from([False, False, True]),
    objects=st.lists(
        st.tuples(st.sampled_from(ALL_VERSIONS), st.booleans()), min_size=2, max_size=8
    ).map(tuple),
    steps=st.lists(st.sampled_from(STEPS), min_size=1, max_size=6).map(tuple),
    versions=st.sampled_from([("v1beta1", "v1"), ALL_VERSIONS]),
    strike=st.integers(1, 5),
    late=st.booleans(),
)
LATE_OBJECTS = History(
    "none", False, (("v1beta1", False),) * 5 + (("v1beta1", True),) * 3, ("migrate",)
)
FALSE_STORED = History(
    "none", False, (("v1beta1", False),) * 4, ("lie", "remove", "upgrade", "migrate")
)
KILLED_AFTER_ACCEPTED = History(
    "lossy", False, (("v1beta1", True), ("v1", True)),
    ("accept", "tool-killed", "undo", "flip", "undo"),
)  # fmt: skip
FLIPPED_MIDWAY = History(
    "none", False, (("v1alpha1", False), ("v1alpha1", True)), ("flip", "migrate", "flipped-midway")
)
SERVER_KILLED = History(
    "rules", False, (("v1beta1", True),) * 6, ("server-killed", "keep-going", "undo"), strike=2
)
OWNERS_AT_TWO_VERSIONS = History(
    "none", True, (("v1", True), ("v1beta1", False), ("v1", True)), ("edit", "flipped-midway"),
    strike=2,
)  # fmt: skip


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LossCluster]:
    folder = tmp_path_factory.mktemp("losses")
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(folder / "state"))
        built = LossCluster(folder, stack)
        yield built
        print(f"{built.played} histories: {dict(built.steps)}", file=sys.stderr)


@pytest.mark.parametrize("shard", range(SHARDS))
@settings(
    max_examples=HISTORIES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
    phases=[phase for phase in Phase if SHRINKS or phase is not Phase.shrink],
)
@example(history=LATE_OBJECTS)
@example(history=FALSE_STORED)
@example(history=KILLED_AFTER_ACCEPTED)
@example(history=SERVER_KILLED)
@example(history=FLIPPED_MIDWAY)
@example(history=OWNERS_AT_TWO_VERSIONS)
@given(history=histories)
def test_no_history_loses_what_a_version_could_show(
    cluster: LossCluster, shard: int, history: History
) -> None:
    Play(cluster, history).play()
