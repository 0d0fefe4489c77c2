"""Reviews and checks are made in a process of their own, for a while."""

from __future__ import annotations

import asyncio

import pytest
import yaml

from instar.base.errors import BadRequest, TooManyRequests
from instar.base.json_values import Object
from instar.tools.console.jobs.shares import JobShares
from instar.tools.console.jobs.supervisor import Jobs
from tests.console.support import Browser
from tests.console.worlds import forgetting, renaming, widgets
from tests.support.server import LiveServer
from tests.support.webhook import Webhook


def test_a_file_is_reviewed_against_the_cluster(console: LiveServer, browser: Browser) -> None:
    crd = widgets("review.example.com")
    console.create_crd(crd)
    crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].pop(
        "width"
    )
    sides = {
        "old": {"crd": "widgets.review.example.com"},
        "new": {"text": yaml.safe_dump(crd)},
    }

    answer = browser.request("POST", "/console/api/review", sides)

    assert answer.status == 200, answer.text
    [found] = answer.json["crds"]
    removed = next(item for item in found["findings"] if item["path"] == "spec.width")
    assert removed["severity"] == "error"
    assert removed["witness"]["object"]["spec"]
    assert found["plan"]


def test_the_export_is_a_file_and_never_a_page_of_ours(browser: Browser) -> None:
    sides = {"old": None, "new": {"text": yaml.safe_dump(widgets("export.example.com"))}}

    answer = browser.request("POST", "/console/api/review?form=html", sides)

    assert answer.text.lower().startswith("<!doctype html>")
    assert answer.header("Content-Disposition") == 'attachment; filename="review.html"'
    assert "sandbox" in (answer.header("Content-Security-Policy") or "")


def test_a_text_that_is_not_a_crd_is_a_problem_of_the_report(browser: Browser) -> None:
    answer = browser.request("POST", "/console/api/review", {"new": {"text": "a: ["}})

    assert answer.status == 200
    assert "not readable as YAML" in answer.json["problems"][0]["message"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"new": {}},
        {"new": {"text": 1}},
        {"new": {"object": {"kind": "Pod"}}},
        {"new": {"text": "x"}, "objects": True},
    ],
)
def test_a_crd_that_cannot_be_reviewed_is_reported(browser: Browser, body: object) -> None:
    answer = browser.request("POST", "/console/api/review", body)

    assert answer.status == 400
    assert answer.json["kind"] == "Status"


def test_laws_are_hunted_through_the_real_webhook(console: LiveServer, browser: Browser) -> None:
    group = "laws.example.com"
    with Webhook(forgetting) as hook:
        console.create_crd(widgets(group, conversion=hook.conversion()))
        asked = {"crd": f"widgets.{group}", "examples": 20, "laws": ["round-trip"], "seed": 1}

        answer = browser.request("POST", "/console/api/check", asked)

    assert answer.status == 200, answer.text
    broken = [item for item in answer.json["checks"] if item["verdict"] == "broken"]
    assert answer.json["complete"] is True
    assert "spec.legacy" in str(broken[0]["counterexample"]["differences"])
    assert len(broken[0]["counterexample"]["steps"]) == 3


def test_at_the_time_limit_the_findings_so_far_are_reported(
    console: LiveServer, browser: Browser
) -> None:
    group = "slow.example.com"
    with Webhook(renaming) as hook:
        console.create_crd(widgets(group, conversion=hook.conversion()))
        asked = {"crd": f"widgets.{group}", "examples": 1000, "seconds": 1}

        answer = browser.request("POST", "/console/api/check", asked)

    assert answer.status == 200, answer.text
    assert answer.json["complete"] is False


def test_a_crd_with_one_version_has_nothing_to_check(console: LiveServer, browser: Browser) -> None:
    crd = widgets("single.example.com")
    del crd["spec"]["versions"][0]
    console.create_crd(crd)

    answer = browser.request("POST", "/console/api/check", {"crd": "widgets.single.example.com"})

    assert answer.status == 400
    assert "fewer than two versions" in answer.json["message"]


def test_a_job_behind_too_many_others_is_refused() -> None:
    async def scenario() -> None:
        jobs = Jobs(at_once=1, more=0)
        work: Object = {"old": None, "new": {"text": "", "name": "n"}, "objects": []}
        first = asyncio.create_task(
            jobs.run("review", {**work, "witnesses": False, "form": "json"}, user="a", seconds=20)
        )
        await asyncio.sleep(0)
        with pytest.raises(TooManyRequests):
            await jobs.run("review", work, user="b", seconds=20)
        assert (await first).result["crds"] == []

    asyncio.run(scenario())


def test_a_job_says_why_it_cannot_be_done() -> None:
    async def scenario() -> None:
        crd = widgets("bad.example.com")
        work = {"crd": crd, "by": "", "laws": ["nonsense"], "versions": [], "examples": 1}
        with pytest.raises(BadRequest, match="no law nonsense"):
            await Jobs().run("check", {**work, "seed": 1}, user="a", seconds=20)

    asyncio.run(scenario())


def test_users_take_turns_and_none_takes_all_places() -> None:
    async def scenario() -> list[str]:
        shares, order, begin = JobShares(1, 32, per_user=4), list[str](), asyncio.Event()

        async def job(user: str) -> None:
            async with shares.place(user):
                await begin.wait()
                order.append(user)

        greedy = [asyncio.create_task(job("greedy")) for _ in range(4)]
        await asyncio.sleep(0)
        with pytest.raises(TooManyRequests, match="you have too many"):
            await job("greedy")
        admin = [asyncio.create_task(job("admin")) for _ in range(2)]
        await asyncio.sleep(0)
        begin.set()
        await asyncio.gather(*greedy, *admin)
        return order

    assert asyncio.run(scenario()) == ["greedy", "greedy", "admin", "greedy", "admin", "greedy"]


def test_a_job_cancelled_while_it_waits_frees_its_place() -> None:
    async def scenario() -> None:
        shares = JobShares(1, 32)

        async def job(user: str) -> None:
            async with shares.place(user):
                await asyncio.sleep(0)

        async with shares.place("a"):
            waiting = asyncio.create_task(job("b"))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        async with asyncio.timeout(5):
            await asyncio.gather(*(job(f"user{n}") for n in range(5)))
        assert not shares._unfinished

    asyncio.run(scenario())
