"""Every task and thread the project starts, and why it cannot end unnoticed.

What works without being asked by a request runs under ``supervision.py``: it is restarted, counted
and told by ``/readyz``. Any other place that makes a task or a thread is listed with how many it
makes and what happens to a failure in it; one more is noticed here.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from tests.support.sources import parsed

ROOT = Path(__file__).resolve().parents[2]
MAKERS = {
    "create_task",
    "ensure_future",
    "Thread",
    "ThreadPoolExecutor",
    "ProcessPoolExecutor",
    "run_in_executor",
    "start_new_thread",
}

LISTED = {
    "instar/tools/adopter/shadow_copy.py": (2, "what they miss is found by reconcile()"),
    "instar/base/supervision.py": (2, "what keeps all the others"),
    # The rest of a server's background: each catches per item, and says so here.
    "instar/server/registry/controllers/queue.py": (
        1,
        "one task for each key; any failure is counted",
    ),
    "instar/server/registry/stored/watchers.py": (
        1,
        "framing; any failure is counted, ends the watch",
    ),
    "instar/server/audit/sinks.py": (3, "a call for each batch, counted; two waits of one turn"),
    "instar/server/http/connection_balancer.py": (
        1,
        "one connection; any failure is counted, closes it",
    ),
    "instar/server/lifecycle/metrics_merge.py": (
        1,
        "one answer; the caller waits a second and no more",
    ),
    "instar/wire/storage/watchcache/cache.py": (
        1,
        "reads again until it succeeds; /readyz is red meanwhile",
    ),
    "instar/wire/storage/encryption/store.py": (
        1,
        "any failure ends the relay; the cache reads again",
    ),
    "instar/wire/storage/postgres/batch_call.py": (
        2,
        "its writers get the failure, which is settled",
    ),
    "instar/wire/storage/postgres/link.py": (1, "each caller gets the failure to connect"),
    "instar/wire/storage/postgres/server.py": (1, "the caller is told why no host can be used"),
    "instar/wire/storage/postgres/feed.py": (1, "any failure is counted, and the feed begun again"),
    "instar/wire/storage/etcd/watch.py": (2, "any failure is counted, and the watch begun again"),
    "instar/wire/storage/group_commit.py": (1, "one commit; any failure fails its writers"),
    "instar/wire/storage/sqlite/backup.py": (1, "who asked for the copy is told any failure"),
    "instar/wire/storage/workers/store_server.py": (
        1,
        "one answer to a worker, whatever goes wrong",
    ),
    "instar/cli/serving/workers.py": (1, "reads what a worker prints; kept with the worker"),
    # The caller waits for it and gets its failure.
    "instar/cli/commands/serve.py": (2, "the command waits for it, or ends with it"),
    "instar/cli/commands/webhook.py": (1, "the command waits for it"),
    "instar/tools/console/hosts/proxy_stream.py": (1, "an answer; a failure breaks it off"),
    "instar/tools/console/lazy_future.py": (1, "the caller waits for it"),
    "instar/tools/console/local_migrations.py": (1, "a migration; a failure is shown on its page"),
    "instar/wire/conversion/in_process.py": (3, "the converting request waits for it"),
    "instar/wire/conversion/caching.py": (1, "the converting request waits for it"),
    "instar/wire/conversion/batching.py": (2, "the request waits for it, and gets any failure"),
    "instar/wire/conversion/webhook.py": (1, "a task group"),
    "instar/base/eager_tasks.py": (2, "the rest of a request"),
    "instar/tools/migrator/rewrite_pass.py": (3, "the run waits for it"),
    "instar/base/offload.py": (1, "the caller waits for it"),
    "instar/base/taskless_wait.py": (1, "the caller waits for it"),
    "instar/server/registry/admission/webhooks/call.py": (1, "the request waits for it"),
    "instar/server/registry/admission/webhooks/in_process_call.py": (2, "the request waits for it"),
    "instar/server/registry/admission/webhooks/validating.py": (1, "the request waits for it"),
    "instar/server/registry/stored/codec.py": (1, "the converting request waits for it"),
    "instar/server/registry/stored/label_index.py": (
        1,
        "the lister waits for it; the next begins anew",
    ),
    "instar/tools/envtest/etcd_stub.py": (1, "its end, however it comes, ends the process"),
    "instar/tools/rehearsal/migrating.py": (2, "the rehearsal waits for both"),
    "instar/tools/rehearsal/run.py": (1, "the rehearsal waits for it"),
    "instar/tools/rehearsal/sandbox.py": (1, "a task group"),
    "instar/wire/rpc/channel.py": (1, "the caller waits for the connection"),
    "instar/tools/sdk/asgi.py": (3, "the webhook's request waits for it"),
    "instar/tools/sdk/serving.py": (2, "the webhook's server waits for it"),
    "instar/wire/client/review_client.py": (1, "the request waits for it"),
    "instar/server/http/http1.py": (1, "writes an answer; a failure ends its connection"),
    "instar/server/http/http2/stream.py": (1, "writes an answer; a failure ends its stream"),
    "instar/base/single_flight.py": (1, "the caller waits for it"),
    "instar/server/aggregation/availability.py": (1, "the check waits for its probes"),
    "instar/server/rest/list_stream.py": (1, "a list; a failure breaks it off"),
    "instar/tools/testing/api_server.py": (1, "the test waits for it"),
    "instar/tools/testing/webhooks.py": (1, "the test's own server"),
    "instar/tools/validator/run.py": (1, "the command waits for it"),
    "instar/wire/webhooks/dialer.py": (1, "the caller waits for it"),
    "instar/wire/webhooks/transport.py": (1, "closes an unused connection"),
    "instar/cli/commands/nodes.py": (1, "the command awaits it"),
    "instar/tools/nodes/simulation.py": (3, "a task group; a pod's step reports its failure"),
}


TIMERS = {"call_later", "call_at"}
"""A failure in what a timer calls is logged and counted as ``event-loop``
(``supervision.count_unhandled``), but the timer is not set again."""
SET_AGAIN = {
    "instar/server/http/connections.py": (
        2,
        "set again before it looks; each connection is caught",
    ),
    "instar/server/flow_control/flow_control.py": (
        2,
        "the sweep is set again before it looks; seats are freed once for one request",
    ),
    "instar/server/lifecycle/watchdog.py": (1, "caught, then set again"),
    "instar/server/registry/stored/timer_wheel.py": (1, "each target is caught"),
    "instar/server/registry/stored/watch_dispatcher.py": (1, "each delivery is caught"),
    "instar/server/registry/controllers/queue.py": (3, "each key is a task of its own"),
    "instar/server/http/connection_balancer.py": (2, "sends again what was not sent"),
    "instar/wire/rpc/connection.py": (4, "each call is caught; pings are bytes for a transport"),
    "instar/wire/storage/watchcache/revision_wait.py": (1, "sets futures that are not done"),
    "instar/wire/storage/postgres/commit.py": (2, "set again before it looks"),
    "instar/wire/storage/postgres/batch_call.py": (1, "one call"),
    "instar/wire/storage/postgres/feed.py": (4, "set again by the next who waits"),
    "instar/wire/storage/workers/worker_remote.py": (2, "set again by the next who waits"),
    "instar/wire/storage/etcd/watch.py": (1, "set again by the next who waits"),
    "instar/wire/webhooks/keepalive.py": (2, "closes connections that are given back"),
    # Once, for one request or connection; its end does not depend on the timer alone.
    "instar/server/http/http2/connection.py": (1, "once, after a protocol error: abort"),
    "instar/server/http/http2/stream.py": (1, "once, for one request: its deadline"),
    "instar/server/http/http1.py": (2, "one connection"),
    "instar/server/aggregation/proxied_feed.py": (1, "one proxied watch"),
    "instar/server/registry/controllers/bootstrap/address_claims.py": (
        1,
        "one claim, which goes on",
    ),
    "instar/server/http/tls_transport.py": (2, "one connection"),
    "instar/server/endpoints/openapi.py": (1, "forgets a document"),
    "instar/wire/conversion/batching.py": (1, "one call; who converts has a deadline"),
    "instar/wire/storage/postgres/link.py": (1, "one connection"),
    "instar/tools/nodes/simulation.py": (1, "one pod; a step reports its failure"),
}


def test_every_timer_is_set_again_whatever_fails_or_is_listed() -> None:
    found = _numbers(TIMERS)

    expected = {name: number for name, (number, _) in SET_AGAIN.items()}
    unlisted = {name: number for name, number in found.items() if number > expected.get(name, 0)}
    assert not unlisted, "say here what happens to the timer after a failure in what it calls"
    assert found == expected, "listed in vain"


def test_every_task_and_thread_is_supervised_or_listed() -> None:
    found = _numbers(MAKERS)

    expected = {name: number for name, (number, _) in LISTED.items()}
    unlisted = {name: number for name, number in found.items() if number > expected.get(name, 0)}
    assert not unlisted, "keep it by a Supervision, or say here what happens to a failure in it"
    assert found == expected, "listed in vain"


def _numbers(names: set[str]) -> Counter[str]:
    """How often each file calls one of these."""
    found = Counter[str]()
    for file in ROOT.glob("instar/**/*.py"):
        number = sum(_calls(node, names) for node in ast.walk(parsed(file)))
        if number:
            found[str(file.relative_to(ROOT))] = number
    return found


def _calls(node: ast.AST, names: set[str]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in names
