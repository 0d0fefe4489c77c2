"""Somebody before the console: signs in, looks, and checks that everybody could."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect


class Visitor:
    def __init__(self, page: Page, token: str) -> None:
        self.page = page
        self.token = token

    def sign_in(self, path: str = "/console/") -> None:
        self.page.goto(path)
        self.type_token(self.token)
        expect(self.page.get_by_role("button", name="Sign out")).to_be_visible()

    def type_token(self, token: str) -> None:
        self.page.get_by_label("Token").fill(token)
        self.page.keyboard.press("Enter")

    def visit(self, path: str, heading: str) -> None:
        """The page is there, and nothing of it is still being read."""
        self.page.goto(path)
        expect(self.page.get_by_role("heading", level=1)).to_have_text(heading)
        self.settle()

    def settle(self) -> None:
        expect(self.page.locator("main .loading")).to_have_count(0)

    def barriers(self, axe: str) -> list[str]:
        """What keeps somebody from using the page, as axe finds it. Evaluated by the debugger,
        which no policy of the page stops."""
        self.page.evaluate(axe)
        found: dict[str, Any] = self.page.evaluate(
            "axe.run(document, {resultTypes: ['violations'], runOnly: "
            "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})"
        )
        return [
            f"{rule['id']}: {node['html'][:200]}"
            for rule in found["violations"]
            for node in rule["nodes"][:5]
        ]

    def overflow(self) -> int:
        """Pixels that stick out of the window to the right."""
        pixels: int = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        return pixels
