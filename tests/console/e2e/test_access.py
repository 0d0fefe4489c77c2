"""Who is signed in, and what they are offered."""

from __future__ import annotations

from playwright.sync_api import BrowserContext, Page, expect

from tests.console.e2e.fleet import Fleet
from tests.console.e2e.visitor import Visitor
from tests.support.server import LiveServer

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
ROLES = "/apis/rbac.authorization.k8s.io/v1"


def account(server: LiveServer, name: str, *rules: dict[str, list[str]]) -> str:
    """A token for somebody with these rights."""
    server.request("POST", ACCOUNTS, {"metadata": {"name": name}})
    role = {"metadata": {"name": name}, "rules": list(rules)}
    server.request("POST", f"{ROLES}/clusterroles", role)
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    binding = {"metadata": {"name": name}, "subjects": [subject], "roleRef": reference}
    server.request("POST", f"{ROLES}/clusterrolebindings", binding)
    answer = server.request("POST", f"{ACCOUNTS}/{name}/token", {"spec": {}})
    token: str = answer.json["status"]["token"]
    return token


READS = {
    "apiGroups": ["apiextensions.k8s.io", "shop.example.com"],
    "resources": ["*"],
    "verbs": ["get", "list", "watch"],
}


def test_a_wrong_token_is_refused_in_words(page: Page, fleet: Fleet) -> None:
    page.goto("/console/")
    Visitor(page, "").type_token("wrong")

    expect(page.get_by_role("alert")).to_contain_text("does not know this token")
    expect(page.get_by_label("Token")).to_have_value("")


def test_the_token_is_nowhere_a_script_can_read_it(
    visitor: Visitor, server: LiveServer, context: BrowserContext
) -> None:
    kept = visitor.page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])"
    )

    assert server.token not in kept
    cookies = [item for item in context.cookies() if server.token in str(item.get("value", ""))]
    assert all(item.get("httpOnly") and item.get("sameSite") == "Strict" for item in cookies)


def test_a_session_that_ends_keeps_the_page(visitor: Visitor, context: BrowserContext) -> None:
    page = visitor.page
    visitor.visit(f"/console/objects/{Fleet.orders}?q=order-00", "Order objects")
    context.clear_cookies()

    page.get_by_label("Version").select_option("v1beta1")
    expect(page.get_by_role("dialog", name="sign in")).to_be_visible()
    visitor.type_token(visitor.token)

    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".table-row")).to_have_count(10)
    assert "q=order-00" in page.url


def test_signing_out_leaves_nothing_behind(visitor: Visitor) -> None:
    page = visitor.page
    page.get_by_role("button", name="Sign out").click()

    expect(page.get_by_role("dialog", name="sign in")).to_be_visible()
    expect(page.locator(".crd")).to_have_count(0)


def test_actions_that_rbac_forbids_cannot_be_started(
    page: Page, server: LiveServer, fleet: Fleet
) -> None:
    reader = Visitor(page, account(server, "reader", READS))
    reader.sign_in(f"/console/crds/{Fleet.orders}")
    expect(page.get_by_text("Stop serving it")).to_be_visible()

    expect(page.get_by_text("Serve it", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Serve it")).to_have_count(0)
    reader.visit(f"/console/migrations/{Fleet.orders}", f"Migration of {Fleet.orders}")
    expect(page.get_by_role("button", name="Start")).to_be_disabled()


def test_a_user_without_permissions_sees_an_explanation(
    page: Page, server: LiveServer, fleet: Fleet
) -> None:
    stranger = Visitor(page, account(server, "stranger"))
    stranger.sign_in(f"/console/objects/{Fleet.orders}")

    expect(page.get_by_role("alert").first).to_contain_text("forbidden")
