"""The small parts of the migrator: digests, ownership, patience, the journal."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instar.base.errors import Invalid, ServiceUnavailable
from instar.base.json_values import Object
from instar.tools.migrator.content_diff import changed_parts, changes, digest
from instar.tools.migrator.listed_object import ListedObject
from instar.tools.migrator.outcomes import Commands, Fate, ObjectResult, suggestion
from instar.tools.migrator.progress_file import JournalBusy, ProgressFile
from instar.tools.migrator.retries import RetryPolicy, call_with_retries

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(values, st.text(max_size=5))
def test_bookkeeping_does_not_change_a_digest(spec: Any, revision: str) -> None:
    plain: Object = {"metadata": {"name": "a"}, "spec": spec}
    noted = {"name": "a", "resourceVersion": revision, "managedFields": [{}]}

    assert digest(plain) == digest({"spec": spec, "metadata": noted})


@given(values, values)
def test_other_content_has_another_digest(one: Any, other: Any) -> None:
    left, right = ({"metadata": {}, "spec": value} for value in (one, other))

    assert (digest(left) == digest(right)) == _same(one, other)


def _same(one: Any, other: Any) -> bool:
    import orjson

    option = orjson.OPT_SORT_KEYS
    return orjson.dumps(one, option=option) == orjson.dumps(other, option=option)


def test_a_digest_tells_which_part_changed() -> None:
    before: Object = {"metadata": {"name": "a", "labels": {"x": "1"}}, "spec": {"size": 1}}
    after: Object = {"metadata": {"name": "a", "labels": {"x": "2"}}, "spec": {"size": 1}}

    assert changed_parts(digest(before), digest(after)) == ["metadata.labels"]
    assert changes(before, after) == ['metadata.labels.x: "1" -> "2"']


def test_of_many_changes_the_first_few_are_reported() -> None:
    before: Object = {"metadata": {}, "spec": {str(n): n for n in range(9)}}
    after: Object = {"metadata": {}, "spec": {}}

    assert changes(before, after)[0] == "spec.0: 0 -> absent"
    assert changes(before, after)[-1] == "and more"


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    async def failing() -> None:
        nonlocal calls
        calls += 1
        raise ServiceUnavailable("later")

    with pytest.raises(ServiceUnavailable):
        asyncio.run(call_with_retries(failing, RetryPolicy(attempts=3, first_delay=0.001)))
    assert calls == 3


def test_permanent_failures_are_not_tried_again() -> None:
    calls = 0

    async def refused() -> None:
        nonlocal calls
        calls += 1
        raise Invalid("no")

    with pytest.raises(Invalid):
        asyncio.run(call_with_retries(refused, RetryPolicy()))
    assert calls == 1


def test_a_servers_wish_to_wait_is_kept_within_reason() -> None:
    assert RetryPolicy().delay(0, 3) >= 3
    assert RetryPolicy().delay(0, 4000) <= 60


def _found(key: str, revision: str = "1", **digests: str) -> ListedObject:
    return ListedObject(key, "uid", revision, digests or {"v1": "x"})


def test_finished_objects_are_not_taken_again_unless_they_changed() -> None:
    journal = ProgressFile()
    journal.begin("run")
    journal.take([_found("a"), _found("b")])
    journal.finish_page(
        [ObjectResult("a", Fate.REWRITTEN, "5"), ObjectResult("b", Fate.CURRENT, "1")], "token"
    )

    todo = journal.take([_found("a", "5"), _found("b", "9"), _found("c")])

    assert [item.key for item in todo] == ["b", "c"]


def test_changed_content_is_not_forgotten_by_running_again() -> None:
    journal = ProgressFile()
    journal.begin("run")
    journal.take([_found("a")])
    journal.finish_page([ObjectResult("a", Fate.DIFFERS, "5")], "")

    untouched = journal.take([_found("a", "5")])
    restored = journal.take([_found("a", "6")])

    assert untouched == []
    assert [item.key for item in restored] == ["a"]


def test_a_write_that_was_never_noted_is_recognised_as_ours() -> None:
    journal = ProgressFile()
    journal.begin("run")
    journal.take([_found("a", "1", v1="same")])

    journal.take([_found("a", "2", v1="same")])
    journal.finish_page([ObjectResult("a", Fate.CURRENT, "2")], "")

    assert journal.counts() == {Fate.REWRITTEN: 1}


def test_a_journal_of_another_run_starts_over(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = ProgressFile(path)
    first.begin("generation 1")
    first.take([_found("a")])
    first.finish_page([], "token")
    first.close()

    second = ProgressFile(path)

    assert not second.begin("generation 2")
    assert (second.token, second.counts()) == ("", {})
    second.close()


def test_a_journal_has_one_user_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = ProgressFile(path)

    with pytest.raises(JournalBusy):
        ProgressFile(path)
    first.close(remove=True)

    ProgressFile(path).close(remove=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("reason", "message", "fix"),
    [
        ("PolicyVeto", "denied request: no", "the admission policy must let"),
        ("NamespaceGone", 'namespaces "x" not found', "create the namespace again (kubectl c"),
        ("OwnershipLost", "", "instar migrate x --accept a"),
        ("Invalid", "spec.size: Invalid value", "make the object valid (kubectl edit x)"),
        ("ContentChanged", "", "mend what changed it"),
        ("WouldChange", "", "--accept-change PATH"),
        ("ListedNotFound", "", "its key in etcd and its metadata differ"),
        ("Undecodable", "", "put the version that it is stored in back"),
        ("HTTP 500", "conversion webhook for g/v1 failed: boom", "mend the conversion webhook"),
        ("Forbidden", 'admission webhook "a" denied the request', "--via-status"),
        ("Forbidden", "user cannot patch", "permissions"),
        ("HTTP 500", "etcdserver: request is too large", "make the object smaller"),
        ("BadRequest", "cannot be handled", "look at the object"),
        ("Timeout", "no answer", "run again later"),
    ],
)
def test_every_failure_comes_with_something_to_do(reason: str, message: str, fix: str) -> None:
    commands = Commands("kubectl edit x", "kubectl d", "kubectl c", "instar migrate x --accept a")

    assert fix in suggestion(reason, message, commands)


def test_the_migrator_uses_the_public_api_only() -> None:
    code = (
        "import pkgutil, importlib, sys, instar.tools.migrator as m\n"
        "for item in pkgutil.iter_modules(m.__path__, 'instar.tools.migrator.'):\n"
        "    importlib.import_module(item.name)\n"
        "rooms = ('server', 'registry', 'storage', 'crds', 'conversion')\n"
        "print([n for n in sys.modules if n.split('.')[1:2] and n.split('.')[1] in rooms"
        " and n.startswith('instar.')])"
    )

    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert loaded.stdout.strip() == "[]"
