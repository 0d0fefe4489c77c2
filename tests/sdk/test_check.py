from __future__ import annotations

import argparse
import asyncio
import json
import random
import runpy
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import trustme
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from instar.cli.commands import check
from instar.cli.shared.failure import CliFailure
from instar.sdk import Converter, lossy
from instar.sdk.asgi import ConversionApp
from instar.sdk.serving import TlsFiles, listen, serve
from instar.testing import assert_law, check_converter
from instar.tools.sdk.checking.case import case_of
from instar.tools.sdk.checking.definition import parse_crd
from instar.tools.sdk.checking.report import CheckReport, LawResult
from instar.tools.sdk.checking.search import check as run_check
from tests.sdk import planted


def _broken(report: CheckReport) -> dict[str, LawResult]:
    return {outcome.law: outcome for outcome in report.broken}


def _content(outcome: LawResult, position: int = 0) -> dict[str, Any]:
    assert outcome.counterexample is not None
    obj = outcome.counterexample.inputs[position]
    return {k: v for k, v in obj.items() if k not in ("apiVersion", "kind", "metadata")}


def test_a_dropped_field_is_found_and_shown_alone() -> None:
    found = _broken(check_converter(planted.CRD, planted.drops_a_field, examples=100))

    assert set(found) == {"round-trip"}
    assert _content(found["round-trip"]) == {"spec": {"paused": False}}
    example = found["round-trip"].counterexample
    assert example is not None
    assert example.found == ["lost     spec.paused = false"]


def test_a_stale_annotation_is_found_and_shown_with_the_edit() -> None:
    found = _broken(check_converter(planted.CRD, planted.stale_annotation, examples=100))

    assert set(found) == {"edit"}
    original, edit = _content(found["edit"]), _content(found["edit"], 1)
    assert len(original.get("spec", {})) + len(edit.get("spec", {})) <= 2
    example = found["edit"].counterexample
    assert example is not None
    assert "does not survive" in example.message


def test_a_crash_on_parts_is_found_and_shown_with_the_part() -> None:
    found = _broken(check_converter(planted.REQUIRED_CRD, planted.crashes_on_parts))

    assert set(found) == {"partial"}
    assert _content(found["partial"]) == {"spec": {"image": ""}}
    assert _content(found["partial"], 1) in ({}, {"spec": {}})
    example = found["partial"].counterexample
    assert example is not None
    assert "KeyError" in example.message


def test_a_field_the_target_does_not_know_breaks_the_schema_law() -> None:
    found = _broken(check_converter(planted.CRD, planted.unknown_field, examples=60))

    example = found["schema"].counterexample
    assert example is not None
    assert example.found in (["pruned   spec.timeout"], ["pruned   spec.timeoutMillis"])


def _plain(up: Any, down: Any = lambda obj: obj) -> Converter:
    widget = Converter("Widget", group=planted.GROUP)
    widget.convert("v1", "v2")(up)
    widget.convert("v2", "v1")(down)
    return widget


SAME_CRD: dict[str, Any] = json.loads(json.dumps(planted.REQUIRED_CRD))
SAME_CRD["spec"]["versions"][1]["schema"] = SAME_CRD["spec"]["versions"][0]["schema"]


def _without_labels(obj: dict[str, Any]) -> None:
    obj["metadata"].pop("labels", None)


def _dice(obj: dict[str, Any]) -> None:
    obj["spec"]["image"] = str(random.random())


def _defaulting(obj: dict[str, Any]) -> None:
    obj.setdefault("spec", {}).setdefault("image", "default")


def _emptying(obj: dict[str, Any]) -> None:
    obj["spec"] = {}


@pytest.mark.parametrize(
    ("up", "law"),
    [
        (_without_labels, "contract"),
        (_dice, "deterministic"),
        (_defaulting, "partial"),
        (_emptying, "schema"),
    ],
)
def test_each_law_catches_its_own_bug(up: Any, law: str) -> None:
    report = check_converter(SAME_CRD, _plain(up), examples=60)

    assert law in _broken(report)


class _ReversingResponder:
    """A webhook that is right for one object and mixes several up."""

    def convert(self, objects: Sequence[dict[str, Any]], api_version: str) -> list[Any]:
        return [{**obj, "apiVersion": api_version} for obj in reversed(objects)]


def test_a_list_must_convert_like_its_items() -> None:
    case = case_of(parse_crd(SAME_CRD), _ReversingResponder())

    report = run_check(case, examples=20, seed=1)

    assert set(_broken(report)) == {"list"}


def test_a_declared_loss_is_allowed_and_an_undeclared_one_is_not() -> None:
    crd = json.loads(json.dumps(SAME_CRD))
    new = crd["spec"]["versions"][1]
    new["schema"] = json.loads(json.dumps(new["schema"]))
    new["schema"]["openAPIV3Schema"]["properties"]["extra"] = {"type": "string"}
    declared = Converter("Widget", group=planted.GROUP)
    declared.between("v1", "v2", rules=[lossy("extra", "nobody reads it")])
    careless = _plain(lambda obj: obj, lambda obj: obj.pop("extra", None) and None)

    assert check_converter(crd, declared, examples=60).exit_code == 0
    assert "round-trip" in _broken(check_converter(crd, careless, examples=60))


def test_rules_written_in_cel_limit_the_objects() -> None:
    pytest.importorskip("cel_expr_python")
    crd = json.loads(json.dumps(SAME_CRD))
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["x-kubernetes-validations"] = [
        {"rule": "!self.image.startsWith('bad')"}
    ]
    schema["properties"]["spec"]["properties"]["image"]["enum"] = ["bad", "good"]

    def refuse_bad(obj: dict[str, Any]) -> None:
        assert obj.get("spec", {}).get("image") != "bad"

    report = check_converter(crd, _plain(refuse_bad), examples=30)

    assert not [o for o in report.broken if o.source == "v1"]


def test_assert_law_fails_with_the_story() -> None:
    obj = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "a", "uid": "u"},
        "spec": {"paused": True},
    }

    with pytest.raises(AssertionError, match=r"lost     spec\.paused = true"):
        assert_law(
            "round-trip", planted.CRD, planted.drops_a_field, [obj], source="v1", target="v2"
        )
    assert_law("round-trip", planted.CRD, planted.good, [obj], source="v1", target="v2")


def _args(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    check.add_arguments(parser)
    return parser.parse_args(words)


@pytest.fixture
def crd_file(tmp_path: Path) -> Path:
    path = tmp_path / "crd.yaml"
    path.write_text(yaml.safe_dump(planted.CRD))
    return path


def test_the_command_prints_writes_tests_and_exits_1(
    crd_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tests = tmp_path / "test_found.py"
    words = ["--crd", str(crd_file), "--converter", "tests.sdk.planted:drops_a_field"]

    code = check.run(_args(*words, "--seed", "1", "--examples", "60", "--write-tests", str(tests)))

    out = capsys.readouterr().out
    assert code == 1
    assert "lost     spec.paused = false" in out
    assert "(seed 1)" in out
    written = runpy.run_path(str(tests))
    with pytest.raises(AssertionError, match="is not the same object"):
        written["test_round_trip_v1_to_v2"]()


def test_json_and_junit_say_the_same(crd_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--crd", str(crd_file), "--converter", "tests.sdk.planted:unknown_field"]
    words += ["--laws", "schema,total", "--seed", "1", "--examples", "100"]

    check.run(_args(*words, "-o", "json"))
    document = json.loads(capsys.readouterr().out)
    check.run(_args(*words, "-o", "junit"))
    suite = ET.fromstring(capsys.readouterr().out)

    broken = [item for item in document["checks"] if item["verdict"] == "broken"]
    assert {item["law"] for item in document["checks"]} == {"schema", "total"}
    assert document["exitCode"] == 1
    assert suite.get("failures") == str(len(broken)) == "2"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "pass --crd"),
        (["--crd", "/absent", "--converter", "tests.sdk.planted:good"], "No such file"),
        (["--crd", "{crd}", "--converter", "nothing"], "neither package.module"),
        (["--crd", "{crd}", "--url", "https://127.0.0.1:1/"], "127.0.0.1:1"),
        (
            ["--crd", "{crd}", "--converter", "tests.sdk.planted:good", "--laws", "x"],
            "no law 'x'",
        ),
        (
            ["--crd", "{crd}", "--converter", "tests.sdk.planted:good", "--versions", "v1,v7"],
            "has no version v7",
        ),
    ],
)
def test_an_uncheckable_converter_exits_2(words: list[str], message: str, crd_file: Path) -> None:
    with pytest.raises(CliFailure, match=message) as caught:
        check.run(_args(*(word.format(crd=crd_file) for word in words)))

    assert caught.value.code == 2


@contextmanager
def _webhook(converter: Converter, folder: Path) -> Iterator[str]:
    """A webhook on another thread, as the check itself is not asynchronous."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    issued = authority.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(str(folder / "tls.crt"))
    issued.private_key_pem.write_to_path(str(folder / "tls.key"))
    tls = TlsFiles(cert=folder / "tls.crt", key=folder / "tls.key")
    sock = listen("127.0.0.1", 0)
    ready = threading.Event()
    stops: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def main() -> None:
        stop = asyncio.Event()
        stops.append((asyncio.get_running_loop(), stop))
        await serve(ConversionApp(converter), sock, tls, stop=stop, started=ready.set)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    ready.wait(10)
    try:
        yield f"https://127.0.0.1:{sock.getsockname()[1]}/convert"
    finally:
        loop, stop = stops[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)


@pytest.mark.parametrize(("name", "code"), [("good", 0), ("drops_a_field", 1)])
def test_a_webhook_behind_a_url_is_checked(
    name: str, code: int, crd_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with _webhook(getattr(planted, name), tmp_path) as url:
        words = ["--crd", str(crd_file), "--url", url, "--ca", str(tmp_path / "ca.pem")]
        got = check.run(_args(*words, "--hub", "v2", "--examples", "8", "--seed", "3"))

    assert got == code, capsys.readouterr().out


@pytest.mark.anyio
async def test_live_objects_are_read_and_a_counterexample_is_cut_down(
    crd_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def handler(request: web.Request) -> web.Response:
        assert request.method == "GET"
        item = {"metadata": {"name": "a", "uid": "u"}, "spec": {"paused": True, "image": "x"}}
        return web.json_response({"items": [item], "metadata": {}})

    api = web.Application()
    api.router.add_route("*", "/{path:.*}", handler)
    async with TestServer(api) as server:
        config = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c"}}],
            "clusters": [{"name": "c", "cluster": {"server": str(server.make_url(""))}}],
        }
        (tmp_path / "config").write_text(yaml.safe_dump(config))
        words = ["--crd", str(crd_file), "--converter", "tests.sdk.planted:drops_a_field"]
        words += ["--live", "--kubeconfig", str(tmp_path / "config"), "-o", "json"]
        code = await asyncio.to_thread(check.run, _args(*words))

    document = json.loads(capsys.readouterr().out)
    [first, *_] = [item for item in document["checks"] if item["verdict"] == "broken"]
    assert code == 1
    assert first["counterexample"]["inputs"][0]["spec"] == {"paused": True}


def test_the_laws_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.run(_args("--list-laws")) == 0
    assert "round-trip" in capsys.readouterr().out
