"""``--qps``: every command that talks to a cluster has it, and every client it opens obeys it.

The commands come from the parsers, so a new command with ``--kubeconfig`` fails here until it has a
row.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from instar.base.errors import ServiceUnavailable
from instar.cli.main import COMMANDS, main, parser_of
from instar.wire.client import client as client_module
from tests.migrator.support import crd

RATE = 7.0
LOCAL = frozenset({"serve", "envtest"})
"""Their ``--kubeconfig`` is a file that they write."""
UNPACED = frozenset({"adopt", "console"})
"""Writers are refused, or a person waits, until the answers have come."""
ASKING: dict[str, list[str]] = {
    "access": ["record", "alice"],
    "census": ["widgets.example.com"],
    "check": ["--live", "--crd", "kube:widgets.example.com", "--converter", "json:loads"],
    "fields": ["widgets.example.com"],
    "history": ["widgets.example.com", "one"],
    "migrate": ["widgets.example.com"],
    "nodes": [],
    "rehearse": ["--from", "kube:", "--to", "CRD"],
    "restore": ["widgets.example.com", "one", "--at", "7"],
    "review": ["kube:widgets.example.com", "CRD"],
    "snapshot": ["-o", "OUT"],
    "storage": ["backup", "OUT"],
    "types": ["--python", "dataclass", "kube:widgets.example.com"],
    "upgrade": ["CRD"],
    "validate": ["kube:widgets.example.com", "--", "CRD"],
    "versions": ["widgets.example.com"],
    "webhook": [],
}
"""How each command asks a cluster at once; those without words run until they are stopped."""


class Recorded:
    """A pace that notes its rate and lets no request through."""

    seen: list[float]

    def __init__(self, qps: float, burst: int = 1) -> None:
        self.seen.append(qps)

    async def wait(self) -> None:
        raise ServiceUnavailable("no request is sent in this test")


def flags(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from flags(below)


def test_every_command_that_reads_a_kubeconfig_has_a_row_and_the_flag() -> None:
    of_clusters = {
        name
        for name in COMMANDS
        if "--kubeconfig" in flags(parser_of(name)) and name not in LOCAL | UNPACED
    }

    assert of_clusters == set(ASKING)
    assert [name for name in of_clusters if "--qps" not in flags(parser_of(name))] == []


@pytest.mark.parametrize("command", [name for name, words in ASKING.items() if words])
def test_clients_of_a_command_ask_at_the_given_rate(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Recorded.seen = []
    monkeypatch.setattr(client_module, "TokenBucket", Recorded)
    definition = tmp_path / "crd.json"
    definition.write_text(json.dumps(crd()))
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(_KUBECONFIG))
    files = {"CRD": str(definition), "OUT": str(tmp_path / "out.tar.gz")}
    words = [files.get(word, word) for word in ASKING[command]]
    action = words[:1] if command in ("access", "storage") else []
    paced = ["--qps", f"{RATE:g}", "--kubeconfig", str(kubeconfig)]

    main([command, *action, *paced, *words[len(action) :]])

    assert Recorded.seen
    assert set(Recorded.seen) == {RATE}


@pytest.mark.parametrize("rate", ["-1", "nan", "inf", "fast"])
def test_a_rate_that_is_not_a_number_of_requests_is_a_usage_error(
    rate: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["census", f"--qps={rate}"])

    assert ended.value.code == 2
    assert f"{rate!r} is no number of requests a second" in capsys.readouterr().err


_KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:9"}}],
    "users": [{"name": "x", "user": {"token": "x"}}],
    "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    "current-context": "x",
}
