"""What people do at the console, from one end to the other."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.console.e2e.fleet import CRDS, GROUP, Fleet, order, orders, put
from tests.console.e2e.visitor import Visitor
from tests.support.crds import crd, fields, version
from tests.support.server import LiveServer

OBJECT = f"""apiVersion: {GROUP}/v2
kind: Route
metadata: {{name: pasted, namespace: default}}
spec: {{host: example.org, port: "80", note: lost on the way}}
"""


def test_home_is_searched_sorted_and_live(visitor: Visitor, server: LiveServer) -> None:
    page = visitor.page
    search = page.get_by_label("search CRDs")
    expect(search).to_be_visible()
    page.keyboard.press("/")
    expect(search).to_be_focused()
    page.keyboard.type("route")
    expect(page.locator(".crd-name")).to_have_text(["Route"])
    assert "q=route" in page.url
    search.fill("")

    server.create_crd(crd(version(), group="new.example.com", plural="news", kind="News"))
    expect(page.get_by_role("link", name="News", exact=True)).to_be_visible()
    server.request("DELETE", f"{CRDS}/news.new.example.com")
    expect(page.get_by_role("link", name="News", exact=True)).to_have_count(0)


def test_a_step_that_is_safe_is_done_and_one_that_is_not_says_why(
    visitor: Visitor, server: LiveServer
) -> None:
    plain = fields(spec=fields(a={"type": "string"}))
    made = crd(version("v1"), version("v1alpha1", plain, served=False), plural="steps", kind="Step")
    server.create_crd(made)
    page = visitor.page
    visitor.visit("/console/crds/steps.example.com", "Step")

    page.get_by_role("button", name="Serve it … v1alpha1").click()
    page.get_by_role("dialog").get_by_role("button", name="Serve it").click()

    card = page.get_by_role("region", name="v1alpha1", exact=True)
    expect(card.get_by_text("Stop serving it")).to_be_visible()
    expect(card.get_by_text("is still served")).to_be_visible()
    stored = server.request("GET", f"{CRDS}/steps.example.com").json
    assert [item["served"] for item in stored["spec"]["versions"]] == [True, True]


def test_objects_are_filtered_selected_and_live(visitor: Visitor, server: LiveServer) -> None:
    page = visitor.page
    visitor.visit(f"/console/objects/{Fleet.orders}", "Order objects")
    rows = page.locator(".table-row")
    patch = {"Content-Type": "application/merge-patch+json"}
    path = f"/apis/{GROUP}/v1/namespaces/default/orders/order-000"
    server.request("PATCH", path, {"spec": {"size": 4711}}, headers=patch)
    expect(page.get_by_role("cell", name="4711")).to_be_visible()

    page.get_by_label("Fields").fill("metadata.name=order-007")
    page.keyboard.press("Enter")
    expect(rows).to_have_count(1)
    page.get_by_label("Fields").fill("")
    page.keyboard.press("Enter")
    page.get_by_label("filter objects").fill("order-01")
    expect(rows).to_have_count(10)
    put(server, "orders", order("order-01x", size=1, colour="red"))
    expect(rows).to_have_count(11)
    server.request("DELETE", f"/apis/{GROUP}/v1/namespaces/default/orders/order-01x")
    expect(rows).to_have_count(10)
    page.keyboard.press("Escape")
    expect(page.get_by_label("filter objects")).not_to_be_focused()
    for name in ("order-010", "order-011"):
        page.keyboard.press("j")
        expect(page.get_by_role("link", name=name, exact=True)).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", level=1)).to_have_text("order-011")


def test_a_review_finds_what_breaks_and_can_be_passed_on(
    visitor: Visitor, context: BrowserContext
) -> None:
    page = visitor.page
    changed = orders("v1")
    changed["spec"]["versions"][2]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][
        "size"
    ]["maximum"] = 5
    visitor.visit(f"/console/review?crd={Fleet.orders}", "Review a change")
    page.get_by_label("The CRD as it will be", exact=True).fill(json.dumps(changed))
    page.get_by_role("button", name="Review", exact=True).click()

    expect(page.get_by_text("must be at most 5").first).to_be_visible(timeout=30_000)
    expect(page.get_by_text("refused", exact=True).first).to_be_visible()
    expect(page.get_by_text("Plan without breakage")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as HTML").click()
    assert "<html" in download.value.path().read_text()
    other = context.new_page()
    other.goto(page.url)
    expect(other.get_by_text("Plan without breakage")).to_be_visible(timeout=30_000)


def test_an_object_is_converted_by_the_real_webhook(visitor: Visitor) -> None:
    page = visitor.page
    visitor.visit("/console/convert", "Convert")
    page.get_by_label("The object, as YAML or JSON", exact=True).fill(OBJECT)
    page.get_by_role("button", name="Convert", exact=True).click()

    expect(page.get_by_text("example.org:80").last).to_be_visible()
    expect(page.get_by_text("this is lost")).to_be_visible()


def test_a_broken_law_shows_its_counterexample(visitor: Visitor) -> None:
    page = visitor.page
    visitor.visit(f"/console/convert?crd={Fleet.routes}", "Convert")
    page.get_by_label("Objects for each law").fill("10")
    page.get_by_role("button", name="Check", exact=True).click()

    counterexample = page.get_by_role("region", name="counterexample").first
    expect(counterexample).to_be_visible(timeout=40_000)
    expect(counterexample.get_by_text("kind: Route").first).to_be_visible()


def test_a_migration_runs_to_its_end(visitor: Visitor, server: LiveServer) -> None:
    page = visitor.page
    visitor.visit(f"/console/migrations/{Fleet.orders}", f"Migration of {Fleet.orders}")
    expect(page.get_by_text("may be stored at v1beta1")).to_be_visible()

    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("succeeded")).to_be_visible(timeout=40_000)
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_text("all is well")).to_be_visible(timeout=40_000)

    expect(page.get_by_text("status.storedVersions names v1 only")).to_be_visible()
    stored = server.request("GET", f"{CRDS}/{Fleet.orders}").json["status"]["storedVersions"]
    assert stored == ["v1"]


@pytest.mark.parametrize("path", ["/console/", f"/console/objects/{Fleet.orders}"])
def test_each_page_has_a_twin_in_json(visitor: Visitor, path: str) -> None:
    page = visitor.page
    page.goto(path)
    with page.expect_popup() as popup:
        page.locator(".twins a").first.click()

    popup.value.wait_for_load_state()

    answer = json.loads(popup.value.locator("body").inner_text())
    assert "crds" in answer or answer["kind"] == "OrderList"


def test_the_past_of_an_object_is_reported_with_diffs(visitor: Visitor, server: LiveServer) -> None:
    put(server, "orders", order("changing", size=1, colour="red"))
    path = f"/apis/{GROUP}/v1/namespaces/default/orders/changing"
    patch = {"Content-Type": "application/merge-patch+json"}
    answer = server.request("PATCH", path, {"spec": {"size": 2}}, headers=patch)
    assert answer.status == 200, answer.text
    page = visitor.page
    visitor.visit(f"/console/object/{Fleet.orders}/default/changing", "changing")

    page.get_by_text("changed", exact=True).first.click()

    diff = page.get_by_role("region", name="what revision").first
    expect(diff.get_by_text("size: 1")).to_be_visible()
    expect(diff.get_by_text("size: 2")).to_be_visible()
    assert "revision=" in page.url
