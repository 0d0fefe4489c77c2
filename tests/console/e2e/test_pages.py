"""Every page at three sizes, light and dark: it says what it should, fits, and everybody can use
it. Screenshots are kept in ``.screenshots``."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.console.e2e.conftest import AXE, SCREENSHOTS
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
    "convert": ("/console/convert", "Convert", "Does the conversion keep the laws?"),
    "migrations": ("/console/migrations", "Migrations", "Order"),
    "migration": (f"/console/migrations/{ORDERS}", f"Migration of {ORDERS}", "What can be done"),
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
