"""Rules over a large object share the processor with everyone else."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from instar.kube.schema.cel_rules.evaluate import CelProgram
from instar.kube.schema.rule_engine import RuleResult
from tests.support import crds
from tests.support.crds import fields, version
from tests.support.server import Answer, LiveServer

GROUP = "heavy.example.com"
PAIRS = "self.all(x, self.all(y, x != y || x == y))"


def crd() -> dict[str, Any]:
    numbers = {
        "type": "array",
        "maxItems": 1000,
        "items": {"type": "integer"},
        "x-kubernetes-validations": [{"rule": PAIRS}],
    }
    schema = fields(spec=fields(numbers=numbers))
    return crds.crd(version("v1", schema), group=GROUP, plural="things", kind="Thing")


def test_rules_over_a_large_object_do_not_hold_the_event_loop(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate = CelProgram.evaluate
    judged_in: list[int] = []

    def recorded(program: CelProgram, new: Any, old: Any | None) -> RuleResult:
        judged_in.append(threading.get_ident())
        return evaluate(program, new, old)

    monkeypatch.setattr(CelProgram, "evaluate", recorded)
    server.create_crd(crd())
    loops_thread = server.run(_thread())
    _create(server, "first", 3)  # compiles the schema, in a thread
    judged_in.clear()

    answers = [_create(server, "small", 3), _create(server, "large", 1000)]

    assert [answer.status for answer in answers] == [201, 422]
    assert "cost" in answers[1].json["message"]
    assert judged_in[0] == loops_thread
    assert judged_in[1] != loops_thread


async def _thread() -> int:
    return threading.get_ident()


def _create(server: LiveServer, name: str, numbers: int) -> Answer:
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Thing",
        "metadata": {"name": name},
        "spec": {"numbers": list(range(10_000, 10_000 + numbers))},
    }
    return server.request("POST", f"/apis/{GROUP}/v1/namespaces/default/things", body)
