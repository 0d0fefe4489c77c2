"""Every page at three sizes, light and dark: it says what it should, fits, and everybody can use
it. Screenshots are kept in ``.screenshots``."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Browser, expect

from tests.console.e2e.conftest import AXE, ROOT, SCREENSHOTS
from tests.console.e2e.fleet import Fleet
from tests.console.e2e.visitor import Visitor
from tests.support.server import LiveServer

ORDERS, ROUTES = Fleet.orders, Fleet.routes
PAGES = {
    "home": ("/console/", "Custom resources", "Order"),
    "crd": (f"/console/crds/{ORDERS}", "Order", "Stop serving it"),
    "map": (f"/console/crds/{ROUTES}", "Route", "Converted by webhook"),
    "schema": (f"/console/crds/{ORDERS}?tab=schema", "Order", "labelled: array"),
    "fields": (f"/console/crds/{ORDERS}?tab=fields", "Order", "spec.size"),
    "events": (f"/console/crds/{ORDERS}?tab=events", "Order", "Established: True"),
    "yaml": (f"/console/crds/{ORDERS}?tab=yaml", "Order", "kind: CustomResourceDefinition"),
    "objects": (f"/console/objects/{ORDERS}", "Order objects", "order-000"),
    "object": (f"/console/object/{ROUTES}/default/front", "front", "host: example.com"),
    "owners": (f"/console/object/{ORDERS}/default/old-003?owners=1", "old-003", "size: 3"),
    "review": ("/console/review", "Review a change", "Before"),
    "convert": ("/console/convert", "Convert", "Check the conversion"),
    "rehearsal": ("/console/rehearsal", "Rehearse an upgrade", "instar rehearse --from kube:"),
    "migrations": ("/console/migrations", "Migrations", "Order"),
    "migration": (f"/console/migrations/{ORDERS}", f"Migration of {ORDERS}", "Actions"),
    "webhooks": ("/console/webhooks", "Webhooks", ROUTES),
    "nowhere": ("/console/no/such/page", "No such page", "All CRDs"),
}
SCREENS = [(400, 800, "dark"), (1280, 900, "light"), (1280, 900, "dark"), (3840, 2160, "light")]
JUDGED = SCREENS[:2]
"""Where axe looks: what it judges depends on colours and on what is beside what."""


@pytest.mark.parametrize(("width", "height", "scheme"), SCREENS)
def test_every_page(
    chromium: Browser, server: LiveServer, fleet: Fleet, width: int, height: int, scheme: str
) -> None:
    SCREENSHOTS.mkdir(exist_ok=True)
    axe = AXE.read_text() if AXE.exists() else ""
    context = chromium.new_context(
        base_url=server.url,
        ignore_https_errors=True,
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    visitor = Visitor(context.new_page(), server.token)
    found: dict[str, list[str]] = {}
    visitor.sign_in()
    for name, (path, heading, text) in PAGES.items():
        visitor.visit(path, heading)
        expect(visitor.page.locator("main").get_by_text(text).first).to_be_visible()
        visitor.page.screenshot(path=SCREENSHOTS / f"{name}-{width}-{scheme}.png")
        judged = axe and (width, height, scheme) in JUDGED
        found[name] = visitor.barriers(axe) if judged else []
        if visitor.overflow() > 0:
            found[name].append(f"{visitor.overflow()} pixels stick out")
    context.close()

    assert {name: barriers for name, barriers in found.items() if barriers} == {}
    if not axe:
        pytest.skip("no axe-core here (scripts/console installs it): pages NOT checked by it")


def test_the_first_page_is_there_at_once(visitor: Visitor) -> None:
    visitor.page.goto("/console/")
    expect(visitor.page.get_by_role("link", name="Order", exact=True)).to_be_visible()

    sizes: list[int] = visitor.page.evaluate(
        "performance.getEntriesByType('resource').filter(one => one.name.includes('/assets/'))"
        ".map(one => one.encodedBodySize)"
    )

    assert 0 < sum(sizes) < 60_000


REVIEW = ROOT / "examples" / "review"
REPORT = {
    "format": "instar.dev/rehearsal/v1",
    "go": False,
    "reasons": [{"word": "pruned", "text": f"{ORDERS}, apply the new schemas: 3 pruned"}],
    "warnings": [],
    "origin": "world",
    "releases": ["after.yaml"],
    "objects": 3,
    "crds": [
        {
            "name": ORDERS,
            "objects": 3,
            "noWayBackFrom": None,
            "steps": [
                {
                    "release": "after.yaml",
                    "title": "apply the new schemas",
                    "standing": "broken",
                    "unknown": {},
                    "objects": {
                        "counts": {"pruned": 3},
                        "examples": [
                            {
                                "object": "default/a",
                                "version": "v1",
                                "damage": "pruned",
                                "reasons": ["at v1, spec.color is gone"],
                                "diff": [" spec:", "-  color: " + "red" * 100],
                            }
                        ],
                    },
                    "clients": {"kubectl": {"standing": "warned", "requests": 2, "reasons": []}},
                    "wayBack": {"way": "free", "why": ""},
                }
            ],
            "faults": [],
        }
    ],
    "assumptions": [],
    "problems": [],
}


@pytest.mark.parametrize("width", [400, 1280])
def test_reports_fit_and_are_accessible(visitor: Visitor, width: int) -> None:
    page = visitor.page
    page.set_viewport_size({"width": width, "height": 900})
    axe = AXE.read_text() if AXE.exists() else ""
    visitor.visit("/console/review", "Review a change")
    for label, name in (("The CRD as it is", "before"), ("The CRD as it will be", "after")):
        page.get_by_label(label, exact=True).fill((REVIEW / f"{name}.yaml").read_text())
    page.get_by_role("button", name="Review", exact=True).click()
    expect(page.get_by_text("2 errors")).to_be_visible(timeout=60_000)
    found = {"review": visitor.overflow()}
    refusal = page.locator(".line code.problem", has_text="less than or equal to 50")
    top = "cell => cell.getBoundingClientRect().top"
    assert refusal.evaluate(f"cell => ({top})(cell) - ({top})(cell.parentElement) < 2")
    barriers = visitor.barriers(axe) if axe else []

    visitor.visit("/console/rehearsal", "Rehearse an upgrade")
    page.get_by_label("report.json", exact=True).fill(json.dumps(REPORT))
    expect(page.get_by_text("NO-GO")).to_be_visible()
    found["rehearsal"] = visitor.overflow()
    barriers += visitor.barriers(axe) if axe else []

    assert {name: pixels for name, pixels in found.items() if pixels > 0} == {}
    assert barriers == []


def test_every_page_names_the_cluster(visitor: Visitor, server: LiveServer) -> None:
    address = server.url.removeprefix("https://")
    for path, heading, _ in PAGES.values():
        visitor.visit(path, heading)
        expect(visitor.page.locator(".topbar .cluster")).to_contain_text(address)


def test_namespaces_are_chosen_from_a_list(visitor: Visitor) -> None:
    visitor.visit(f"/console/objects/{ORDERS}", "Order objects")
    picker = visitor.page.get_by_label("Namespace")
    expect(picker.locator("option", has_text="kube-system")).to_have_count(1)

    picker.select_option("kube-system")

    expect(visitor.page).to_have_url(re.compile(r"namespace=kube-system"))
    expect(visitor.page.get_by_text("0 objects")).to_be_visible()


def test_yaml_is_typed_in_a_monospace_font(visitor: Visitor) -> None:
    visitor.visit("/console/convert", "Convert")

    font: str = visitor.page.locator("textarea").evaluate("e => getComputedStyle(e).fontFamily")

    assert "monospace" in font


def test_a_narrow_screen_shows_every_page_link_and_differences_in_one_column(
    visitor: Visitor,
) -> None:
    page = visitor.page
    page.set_viewport_size({"width": 400, "height": 800})

    visitor.visit(f"/console/object/{ROUTES}/default/front", "front")

    nav = page.locator(".topbar nav")
    assert nav.evaluate("nav => nav.scrollWidth <= nav.clientWidth")
    expect(page.locator(".line code.removed", has_text="address: ")).to_be_visible()
    assert page.locator(".line", has_text="host: example.com").locator("code").count() == 1
