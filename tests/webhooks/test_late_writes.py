"""Writes that waited for a webhook while what they were prepared for went away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from tests.support.server import Answer, LiveServer
from tests.support.webhook import Webhook
from tests.webhooks.support import Watching, Widgets


@contextmanager
def held(hook: Webhook, write: Callable[[], Answer]) -> Iterator[list[Answer]]:
    """While the block runs, ``write`` waits for its webhook; then its answer is there."""
    answers: list[Answer] = []
    calls = len(hook.calls)
    hook.pause()
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        hook.wait_for_calls(calls + 1)
        try:
            yield answers
        finally:
            hook.resume()
        answers.append(writing.result())


def creating(widgets: Widgets, name: str, namespace: str = "default") -> Callable[[], Answer]:
    path, body = widgets.path("v2", namespace=namespace), widgets.widget("v2", name)
    return lambda: widgets.server.request("POST", path, body)


def delete(server: LiveServer, path: str) -> None:
    """Delete, and wait until it is gone with all it held."""
    collection, _, name = path.rpartition("/")
    watch = Watching(server, f"{collection}?fieldSelector=metadata.name={name}")
    assert server.request("DELETE", path).status == 200
    watch.wait_for(lambda lines: lines[-1:] != [] and lines[-1]["type"] == "DELETED")
    watch.close()


def test_nothing_is_stored_in_a_version_that_is_the_storage_version_no_more(
    widgets: Widgets, hook: Webhook
) -> None:
    widgets.create("v1", "old")
    with held(hook, creating(widgets, "late")) as answers:
        widgets.store_at("v2")
    assert answers[0].status == 503
    assert answers[0].header("retry-after") == "1"
    assert widgets.get("v2", "late").status == 404
    assert widgets.create("v2", "late")
    assert widgets.stored("late")["apiVersion"].endswith("/v2")


def test_nothing_is_stored_for_a_crd_that_is_gone(widgets: Widgets, hook: Webhook) -> None:
    server = widgets.server
    with held(hook, creating(widgets, "late")) as answers:
        delete(server, widgets.crd_path)
    assert answers[0].status in (403, 404)
    server.create_crd(widgets.crd)
    assert widgets.get("v1").json["items"] == []


def test_nothing_is_stored_in_a_namespace_that_is_gone(
    server: LiveServer, widgets: Widgets, hook: Webhook
) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "late-writes"}}
    assert server.request("POST", "/api/v1/namespaces", space).status == 201
    with held(hook, creating(widgets, "late", "late-writes")) as answers:
        delete(server, "/api/v1/namespaces/late-writes")
    assert answers[0].status in (403, 404)
    found = server.request("GET", widgets.path("v1", namespace="late-writes"))
    assert found.json["items"] == []
