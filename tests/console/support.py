"""A server with its console, and a browser as far as HTTP is concerned."""

from __future__ import annotations

from typing import Any, Protocol

from tests.support.server import Answer

PAGE = {"X-Instar-Console": "1"}


class Place(Protocol):
    """Where a console is."""

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        token: str | None = None,
    ) -> Answer: ...


class Browser:
    """Keeps cookies and sends what a page of the console sends."""

    def __init__(self, server: Place) -> None:
        self._server = server
        self.cookies: dict[str, str] = {}

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        page: bool = True,
    ) -> Answer:
        sent = {**(PAGE if page else {}), **(headers or {})}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answer = self._server.request(method, path, body, headers=sent, token=None)
        for line in cookie_lines(answer):
            name, _, value = line.partition(";")[0].partition("=")
            if "Max-Age=0;" in line:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        return answer

    def sign_in(self, token: str) -> Answer:
        shown = {"token": token}
        answer = self.request("POST", "/console/session", shown)
        assert answer.status == 201, answer.text
        return answer


def cookie_lines(answer: Answer) -> list[str]:
    return [value for name, value in answer.headers if name.lower() == "set-cookie"]
