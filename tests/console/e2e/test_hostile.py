"""Bad days: hostile contents, huge ones, and servers that go away. The page says what happened."""

from __future__ import annotations

import json
import threading

import pytest
from playwright.sync_api import Page, Route, expect

from tests.console.e2e.fleet import GROUP, Fleet, order, put
from tests.console.e2e.visitor import Visitor
from tests.support.crds import crd, fields, version
from tests.support.server import LiveServer
from tests.support.webhook import Webhook

SCRIPT = "<img src=x onerror=window.hit=1><script>window.hit=1</script>"
SCRIPTS = [
    "日本語",
    "العربية",
    "עברית",
    "ไทย",
    "हिन्दी",
    "Ελληνικά",
    "🦋",
    "\u202egnp.exe",
    "a\u0000b",
]
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.fixture
def loose(server: LiveServer) -> str:
    """A CRD that takes anything, made once."""
    made = crd(version(schema=FREE), group="loose.example.com", plural="things", kind="Thing")
    made["spec"]["versions"][0]["additionalPrinterColumns"] = [
        {"name": SCRIPT, "type": "string", "jsonPath": ".text", "description": SCRIPT}
    ]
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert server.request("POST", path, made).status in (201, 409)
    return "things.loose.example.com"


def thing(server: LiveServer, name: str, **content: object) -> None:
    body = {
        "apiVersion": "loose.example.com/v1",
        "kind": "Thing",
        "metadata": {"name": name, "annotations": {"note": SCRIPT}},
        **content,
    }
    path = "/apis/loose.example.com/v1/namespaces/default/things"
    answer = server.request("POST", path, body)
    assert answer.status == 201, answer.text


def test_nothing_an_object_holds_becomes_script(
    visitor: Visitor, server: LiveServer, loose: str
) -> None:
    thing(server, "hostile", text=SCRIPT, **{SCRIPT: {SCRIPT: [SCRIPT]}, "__proto__": {"a": 1}})
    page = visitor.page
    visitor.visit(f"/console/objects/{loose}", "Thing objects")
    expect(page.get_by_text(SCRIPT).first).to_be_visible()
    visitor.visit(f"/console/object/{loose}/default/hostile?owners=1&managed=1", "hostile")
    expect(page.get_by_text("onerror").first).to_be_visible()
    visitor.visit(f"/console/crds/{loose}?tab=yaml", "Thing")
    page.goto(f"/console/crds/{SCRIPT.replace('/', '%2F')}?tab={SCRIPT}&q={SCRIPT}#{SCRIPT}")
    visitor.settle()

    assert page.evaluate("window.hit") is None
    assert page.locator("main img, main script").count() == 0


def test_texts_in_every_script_are_shown(visitor: Visitor, server: LiveServer, loose: str) -> None:
    thing(server, "scripts", words=SCRIPTS)

    visitor.visit(f"/console/object/{loose}/default/scripts", "scripts")

    for word in SCRIPTS[:7]:
        expect(visitor.page.get_by_text(word).first).to_be_visible()


def test_an_object_of_three_megabytes_is_shown(
    visitor: Visitor, server: LiveServer, loose: str
) -> None:
    thing(server, "huge", blob="x" * 1_000_000, rows=[f"row {n}" for n in range(120_000)])

    visitor.visit(f"/console/object/{loose}/default/huge", "huge")
    box = visitor.page.get_by_role("region", name="the object at every version").last
    expect(box.get_by_text("1,000,000 characters")).to_be_visible(timeout=40_000)
    box.evaluate("box => { box.scrollTop = box.scrollHeight }")

    expect(box.get_by_text("row 119999")).to_be_visible()
    assert visitor.page.locator(".line").count() < 200


def test_a_schema_of_ten_thousand_fields_is_shown(visitor: Visitor, server: LiveServer) -> None:
    many = fields(**{f"field{n:05}": {"type": "string"} for n in range(10_000)})
    few = fields(field00000={"type": "integer"}, field00001={"type": "string"})
    server.create_crd(
        crd(
            version("v1beta1", fields(spec=few), storage=True),
            version("v1", fields(spec=many)),
            group="large.example.com",
            plural="larges",
            kind="Large",
        )
    )

    visitor.visit("/console/crds/larges.large.example.com?tab=schema", "Large")
    expect(visitor.page.get_by_text("9,999 lines differ")).to_be_visible()
    box = visitor.page.get_by_role("region", name="schema of v1beta1 and v1").last
    box.evaluate("box => { box.scrollTop = box.scrollHeight }")

    expect(box.get_by_text("field09999: string")).to_be_visible()
    assert visitor.page.locator(".line").count() < 200


def test_a_webhook_that_is_down_is_named(
    visitor: Visitor, server: LiveServer, converter: Webhook
) -> None:
    converter.fault = "http_500"
    try:
        put(server, "routes", {**route("down"), "spec": {"address": "down.example.com:1"}})
        visitor.visit(f"/console/object/{Fleet.routes}/default/down", "down")
        expect(visitor.page.get_by_text("It cannot be shown at v2")).to_be_visible()
        expect(visitor.page.get_by_text("down.example.com:1").first).to_be_visible()
        visitor.visit("/console/webhooks", "Webhooks")
        expect(visitor.page.get_by_text("failing", exact=True).first).to_be_visible()
    finally:
        converter.fault = None


def route(name: str) -> dict[str, object]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Route",
        "metadata": {"name": name, "namespace": "default"},
    }


def test_a_broken_watch_is_resumed(visitor: Visitor, server: LiveServer) -> None:
    page = visitor.page
    cut = threading.Event()

    def once(request: Route) -> None:
        if cut.is_set():
            request.continue_()
        else:
            request.abort()

    page.route(lambda url: "watch=1" in url and "orders" in url, once)
    page.goto(f"/console/objects/{Fleet.orders}?q=broken-watch")
    expect(page.get_by_text("not connected, trying again")).to_be_visible()
    cut.set()
    expect(page.get_by_role("status").get_by_text("live")).to_be_visible()
    put(server, "orders", order("broken-watch", size=1))

    expect(page.get_by_role("link", name="broken-watch")).to_be_visible()


def test_a_compacted_revision_makes_the_page_list_again(visitor: Visitor) -> None:
    page = visitor.page
    lists: list[str] = []
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}

    def answered(request: Route) -> None:
        lists.append(request.request.url)
        if len(lists) > 1:
            request.continue_()
        else:
            request.fulfill(status=200, body=json.dumps(gone) + "\n")

    page.route(lambda url: "watch=1" in url and "orders" in url, answered)
    page.goto(f"/console/objects/{Fleet.orders}")

    expect(page.get_by_role("status").get_by_text("live")).to_be_visible()
    expect(page.locator(".table-row").first).to_be_visible()
    assert len(lists) == 2


def test_an_unreachable_server_is_reported_and_tried_again(page: Page, visitor: Visitor) -> None:
    page.route("**/console/api/overview", lambda request: request.abort())
    page.goto("/console/")
    expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
    page.unroute("**/console/api/overview")
    page.get_by_role("button", name="Try again").click()

    expect(page.get_by_role("link", name="Order", exact=True)).to_be_visible()
