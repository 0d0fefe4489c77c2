"""Sends the requests of a scenario to a server and gives back its answers in their normal form.

The recorder calls it with a real kube-apiserver, the test with an instar server.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import yaml

from instar.base.fast_dataclass import dataclass
from instar.kube.protobuf.envelope import decode_object, encode_object
from tests.recordings.hooks import RecordingHook
from tests.recordings.normalising import CONTROLLERS_MAP, Normaliser, without_order
from tests.recordings.scenarios import PROTOBUF, Ask, Scenario

PATIENCE = 30.0
_BREATH = 0.02
_REFERENCE = re.compile(r"\{\{([^}]+)\}\}")
_NOT_READY = ((429, "initializ"), (503, "apiserver is shutting down"))
"""Code and text of answers while kube-apiserver takes up a CRD: asked again."""
Row = dict[str, Any]


@dataclass(frozen=True)
class PlayedServer:
    """Where requests go, and as whom."""

    url: str
    tls: ssl.SSLContext | None
    headers: Mapping[str, str]
    real: bool
    """A real kube-apiserver, which takes up some writes in its own time."""

    def connect(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        host, port = str(parts.hostname), parts.port
        if self.tls is None:
            return http.client.HTTPConnection(host, port, timeout=PATIENCE)
        return http.client.HTTPSConnection(host, port, timeout=PATIENCE, context=self.tls)


@dataclass(frozen=True)
class RawAnswer:
    code: int
    headers: dict[str, list[str]]
    text: str


def play(scenario: Scenario, server: PlayedServer, hook: RecordingHook) -> list[Row]:
    """One row for each recorded request."""
    return _Player(scenario, server, hook).rows()


class _Player:
    def __init__(self, scenario: Scenario, server: PlayedServer, hook: RecordingHook) -> None:
        self._scenario = scenario
        self._server = server
        self._connection = server.connect()
        self._known: dict[str, Any] = {
            "hook": {"url": hook.url.removesuffix("/convert"), "ca": hook.ca_bundle}
        }
        self._normaliser = Normaliser(managed=scenario.managed, chance={hook.ca_bundle: "<ca>"})

    def rows(self) -> list[Row]:
        try:
            self._prepare()
            rows = (self._row(ask) for ask in self._scenario.asks)
            return [row for row in rows if row is not None]
        finally:
            self._connection.close()

    def _prepare(self) -> None:
        """A namespace with the account that pods need: controllers, which would make it, are not
        part of what is compared."""
        name = self._scenario.name
        spaces = "/api/v1/namespaces"
        self._send(Ask("", "POST", spaces, {"metadata": {"name": name}}))
        account = {"metadata": {"name": "default"}}
        self._send(Ask("", "POST", f"{spaces}/{name}/serviceaccounts", account))
        if not self._server.real:
            self._wait(Ask("", "GET", f"{spaces}/{name}/configmaps/{CONTROLLERS_MAP}"))

    def _row(self, ask: Ask) -> Row | None:
        if ask.until_served:
            self._wait(ask)
            return None
        answer = self._send(ask)
        if ask.by_value and "yaml" in answer.headers.get("content-type", [""])[0]:
            answer = replace(answer, text=json.dumps(yaml.safe_load(answer.text)))
        if self._server.real and ask.pause:
            time.sleep(ask.pause)
        row: Row = {"step": ask.name, "ask": f"{ask.method} {ask.path}", "of": ask.digest()}
        self._normaliser.step, _, label = ask.name.partition(" ")
        if label:
            self._known[label] = _parsed(answer.text)
        if ask.must_succeed and answer.code >= 400:
            raise AssertionError(f"{self._scenario.name} {ask.name}: {answer.text}")
        if ask.only_code:
            return {**row, "code": answer.code}
        if ask.events:
            return {**row, "code": answer.code, **self._told_events(answer)}
        told = self._normaliser.answer(answer.code, answer.headers, answer.text)
        if ask.only_failure:
            told.pop("body", None)
        return {**row, **(without_order(told) if ask.unordered else told)}

    def _told_events(self, answer: RawAnswer) -> Row:
        if answer.code != 200:
            return self._normaliser.answer(answer.code, answer.headers, answer.text)
        return {"events": self._normaliser.events(answer.text.splitlines())}

    def _wait(self, ask: Ask) -> None:
        until = time.monotonic() + PATIENCE
        while self._send(ask).code != 200:
            if time.monotonic() > until:
                raise AssertionError(f"{self._scenario.name}: {ask.path} is not served")
            time.sleep(_BREATH)

    def _send(self, ask: Ask) -> RawAnswer:
        path, body = self._filled(ask.path), self._filled(ask.body)
        headers = {"User-Agent": "recorder", **self._server.headers, **dict(ask.headers)}
        if body is not None:
            headers.setdefault("Content-Type", ask.media)
            body = _encoded(body, ask.media)
        until = time.monotonic() + PATIENCE
        while True:
            answer = self._answered(ask, path, body, headers)
            waits = any(answer.code == code and text in answer.text for code, text in _NOT_READY)
            if not waits or time.monotonic() > until:
                return answer
            time.sleep(_BREATH)

    def _answered(self, ask: Ask, path: str, body: Any, headers: dict[str, str]) -> RawAnswer:
        try:
            return self._exchange(ask, path, body, headers)
        except http.client.RemoteDisconnected:
            self._connection.close()
            return RawAnswer(0, {}, "the server closed the connection without an answer")
        except TimeoutError:
            raise AssertionError(f"{self._scenario.name} {ask.name}: no answer") from None

    def _exchange(self, ask: Ask, path: str, body: Any, headers: dict[str, str]) -> RawAnswer:
        connection = self._server.connect() if ask.events else self._connection
        try:
            connection.request(ask.method, path, body=body, headers=headers)
            answer = connection.getresponse()
            told: dict[str, list[str]] = {}
            for name, value in answer.getheaders():
                told.setdefault(name.lower(), []).append(value)
            if ask.events and answer.status == 200:
                text = b"".join(answer.readline() for _ in range(ask.events)).decode()
            else:
                text = _decoded(answer.read(), told)
            return RawAnswer(answer.status, told, text)
        finally:
            if ask.events:
                connection.close()

    def _filled(self, value: Any) -> Any:
        if isinstance(value, str):
            return _REFERENCE.sub(lambda found: self._looked_up(found[1]), value)
        if isinstance(value, dict):
            return {self._filled(key): self._filled(each) for key, each in value.items()}
        return [self._filled(each) for each in value] if isinstance(value, list) else value

    def _looked_up(self, reference: str) -> str:
        found: Any = self._known
        for part in reference.split("."):
            try:
                found = found[int(part)] if isinstance(found, list) else found[part]
            except (LookupError, TypeError, ValueError):
                return "missing"
        return str(found)


def _encoded(body: Any, media: str) -> bytes:
    if media == PROTOBUF and isinstance(body, dict):
        return encode_object(body)
    return (body if isinstance(body, str) else json.dumps(body)).encode()


def _decoded(body: bytes, headers: Mapping[str, list[str]]) -> str:
    """An answer as text; a protobuf message as the JSON of what it says."""
    if headers.get("content-type", [""])[0].startswith(PROTOBUF):
        return json.dumps(decode_object(body))
    return body.decode(errors="replace")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
