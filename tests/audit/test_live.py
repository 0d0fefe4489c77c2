"""The audit of a running server: what its log and its webhook say, and what happens when they
cannot be told."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from instar.base.supervision import FAILURES
from instar.kube.protobuf.envelope import wrap_message
from instar.server.audit import sinks
from instar.server.audit.event_text import json_line
from instar.server.audit.request_record import AuditEvent
from instar.server.settings import AuditLogSettings, AuditSettings, AuditWebhookSettings
from instar.tools.migrator.census.usage import from_audit_logs
from instar.tools.migrator.live_crd import read_live_crd
from tests.support.crds import loose_crd
from tests.support.server import LiveServer, live_server
from tests.support.waiting import eventually

FOOS = "/apis/ex.io/v1/namespaces/default/foos"


def write_policy(folder: Path, *rules: dict[str, Any], **more: Any) -> Path:
    path = folder / "policy.yaml"
    document = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules, **more}
    path.write_text(json.dumps(document))
    return path


@contextmanager
def audited(
    folder: Path, *rules: dict[str, Any], log: dict[str, Any] | None = None, **more: Any
) -> Iterator[tuple[LiveServer, Path]]:
    path = folder / "audit.log"
    tokens = folder / "tokens.csv"
    tokens.write_text('carol-token,carol,u-1,"devs"\n')
    settings = AuditSettings(
        policy=write_policy(folder, *rules), log=AuditLogSettings(path=str(path), **(log or {}))
    )
    with live_server(audit=settings, token_file=tokens, **more) as server:
        yield server, path


def events(path: Path, **wanted: str) -> list[Any]:
    found = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [each for each in found if all(each.get(k) == v for k, v in wanted.items())]


def by_id(path: Path, id: str) -> list[Any]:
    return events(path, auditID=id)


def test_a_creation_leaves_two_events_with_what_was_sent_and_answered(tmp_path: Path) -> None:
    with audited(tmp_path, {"level": "RequestResponse", "omitManagedFields": True}) as (
        server,
        log,
    ):
        server.create_crd(loose_crd("ex.io"))
        body = {"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": "f1"}, "spec": {}}
        headers = {"Audit-ID": "T-create", "User-Agent": "x", "X-Forwarded-For": "10.1.2.3"}
        answer = server.request("POST", f"{FOOS}?fieldManager=a&pretty=0", body, headers=headers)
        eventually(lambda: len(by_id(log, "T-create")) == 2)
        first, last = by_id(log, "T-create")

    assert answer.header("Audit-Id") == "T-create"
    assert (first["stage"], last["stage"]) == ("RequestReceived", "ResponseComplete")
    assert first["requestURI"] == f"{FOOS}?fieldManager=a&pretty=0"
    assert first["user"]["username"] == "kubernetes-admin"
    assert (first["sourceIPs"], first["userAgent"]) == (["10.1.2.3", "127.0.0.1"], "x")
    assert last["objectRef"] == {
        "resource": "foos",
        "namespace": "default",
        "name": "f1",
        "apiGroup": "ex.io",
        "apiVersion": "v1",
    }
    assert last["requestObject"] == body
    shown = {**answer.json, "metadata": {**answer.json["metadata"]}}
    del shown["metadata"]["managedFields"]
    assert last["responseObject"] == shown
    assert last["responseStatus"] == {"metadata": {}, "code": 201}
    assert last["annotations"] == {
        "authorization.k8s.io/decision": "allow",
        "authorization.k8s.io/reason": "",
    }


def test_events_of_refused_requests_name_user_and_reason(tmp_path: Path) -> None:
    with audited(tmp_path, {"level": "Request"}) as (server, log):
        server.request("POST", FOOS, {}, token="carol-token", headers={"Audit-ID": "no"})
        server.request("GET", FOOS, token="nobody's", headers={"Audit-ID": "who"})
        server.request("GET", f"{FOOS}?timeout=abc", headers={"Audit-ID": "bad"})
        eventually(lambda: len(events(log)) >= 4)
        refused, unknown, bad = by_id(log, "no"), by_id(log, "who"), by_id(log, "bad")

    assert [each["stage"] for each in refused] == ["RequestReceived", "ResponseComplete"]
    assert refused[1]["user"]["username"] == "carol"
    assert refused[1]["responseStatus"]["code"] == 403
    assert "cannot create resource" in refused[1]["responseStatus"]["message"]
    assert refused[1]["annotations"]["authorization.k8s.io/decision"] == "forbid"
    assert "requestObject" not in refused[1]
    assert [(each["stage"], each["user"]) for each in unknown] == [("ResponseStarted", {})]
    assert unknown[0]["responseStatus"]["reason"] == "Unauthorized"
    assert "annotations" not in unknown[0]
    assert [each["stage"] for each in bad] == ["ResponseStarted"]


def test_impersonated_requests_are_recorded_with_both_users(tmp_path: Path) -> None:
    with audited(tmp_path, {"level": "Metadata"}) as (server, log):
        headers = {"Audit-ID": "as", "Impersonate-User": "bob"}
        server.request("GET", FOOS, headers=headers)
        eventually(lambda: len(by_id(log, "as")) == 2)
        first, last = by_id(log, "as")

    assert first["user"]["username"] == last["user"]["username"] == "kubernetes-admin"
    assert "impersonatedUser" not in first
    assert last["impersonatedUser"]["username"] == "bob"
    assert last["annotations"]["authorization.k8s.io/decision"] == "forbid"


def test_a_watch_leaves_three_events(tmp_path: Path) -> None:
    with audited(tmp_path, {"level": "RequestResponse"}) as (server, log):
        server.create_crd(loose_crd("ex.io"))
        headers = {"Audit-ID": "w"}
        server.request("GET", f"{FOOS}?watch=1&timeoutSeconds=1", headers=headers)
        eventually(lambda: len(by_id(log, "w")) == 3)
        found = by_id(log, "w")

    assert [each["stage"] for each in found] == [
        "RequestReceived",
        "ResponseStarted",
        "ResponseComplete",
    ]
    assert found[0]["verb"] == "watch"
    assert [each.get("responseStatus", {}).get("code") for each in found] == [None, 200, 200]


def test_a_deprecated_version_is_marked(tmp_path: Path) -> None:
    with audited(tmp_path, {"level": "Metadata"}) as (server, log):
        server.create_crd(loose_crd("ex.io", deprecated=True))
        server.request("GET", FOOS, headers={"Audit-ID": "old"})
        eventually(lambda: len(by_id(log, "old")) == 2)
        annotations = by_id(log, "old")[1]["annotations"]

    assert annotations["k8s.io/deprecated"] == "true"


def test_requests_that_the_policy_excludes_are_not_recorded(tmp_path: Path) -> None:
    quiet = {"level": "None", "nonResourceURLs": ["/readyz*"]}
    brief = {"level": "Metadata", "omitStages": ["RequestReceived"]}
    with audited(tmp_path, quiet, brief) as (server, log):
        server.request("GET", "/readyz", headers={"Audit-ID": "quiet"})
        server.request("GET", "/version", headers={"Audit-ID": "brief"})
        eventually(lambda: len(by_id(log, "brief")) == 1)
        metrics = server.request("GET", "/metrics").text
        silent = by_id(log, "quiet")

    assert silent == []
    assert 'apiserver_audit_level_total{level="None"} 1' in metrics
    assert "apiserver_audit_event_total" in metrics
    assert "apiserver_audit_requests_rejected_total 0" in metrics


def test_the_log_shows_which_user_uses_which_version(tmp_path: Path) -> None:
    with audited(tmp_path, {"level": "Metadata"}) as (server, log):
        made = server.create_crd(loose_crd("ex.io"))
        for _ in range(3):
            server.request("GET", FOOS, headers={"User-Agent": "ours/1"})
        eventually(lambda: len(events(log, userAgent="ours/1")) == 6)
        found = from_audit_logs([log], read_live_crd(made))

    assert [(use.version, use.verb, use.user, use.agent, use.count) for use in found.uses] == [
        ("v1", "list", "kubernetes-admin", "ours/1", 3)
    ]


def test_an_unwritable_log_delays_no_request_and_is_counted(tmp_path: Path) -> None:
    with audited(tmp_path, {"level": "Metadata"}) as (server, log):
        server.request("GET", "/version")
        eventually(lambda: len(events(log)) == 2)
        log.unlink()
        log.parent.joinpath("gone").mkdir()
        log.symlink_to("/dev/full")
        answers = [server.request("GET", "/version").status for _ in range(5)]
        eventually(
            lambda: (
                'apiserver_audit_error_total{plugin="log"}'
                in server.request("GET", "/metrics").text
            )
        )

    assert answers == [200] * 5


def test_in_blocking_strict_mode_a_request_that_cannot_be_recorded_is_refused(
    tmp_path: Path,
) -> None:
    with audited(tmp_path, {"level": "Metadata"}, log={"mode": "blocking-strict"}) as (server, log):
        well = server.request("GET", "/version")
        full = tmp_path / "full"
        full.symlink_to("/dev/full")
        full.replace(log)  # at once: what is recorded after an answer finds the one or the other
        ill = server.request("GET", "/version")

    assert well.status == 200
    assert (ill.status, ill.json["message"]) == (
        500,
        "Internal error occurred: failed to store audit event",
    )


class Hook:
    """Takes lists of events; refuses the first ``failures`` calls."""

    def __init__(self, failures: int = 0) -> None:
        self.lists: list[Any] = []
        self.paths: list[str] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                hook.paths.append(self.path)
                if len(hook.paths) <= failures:
                    self.send_response(503)
                else:
                    hook.lists.append(json.loads(body))
                    self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                return None

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> Hook:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def kubeconfig(self, folder: Path) -> Path:
        path = folder / "hook.kubeconfig"
        server = f"http://127.0.0.1:{self._server.server_port}/audit"
        path.write_text(
            json.dumps(
                {
                    "clusters": [{"name": "c", "cluster": {"server": server}}],
                    "contexts": [{"name": "c", "context": {"cluster": "c"}}],
                    "current-context": "c",
                }
            )
        )
        return path


def test_a_webhook_is_called_with_batches_and_called_again_after_a_failure(tmp_path: Path) -> None:
    policy = write_policy(tmp_path, {"level": "Metadata"})
    with Hook(failures=1) as hook:
        webhook = AuditWebhookSettings(
            config=hook.kubeconfig(tmp_path), most=4, wait=0.2, backoff=0.05
        )
        with live_server(audit=AuditSettings(policy=policy, webhook=webhook)) as server:
            for number in range(5):
                headers = {"Audit-ID": f"h{number}"}
                assert server.request("GET", "/version", headers=headers).status == 200
            eventually(lambda: sum(len(each["items"]) for each in hook.lists) == 10)

    assert set(hook.paths) == {"/audit?timeout=30s"}
    assert max(len(each["items"]) for each in hook.lists) == 4
    assert {each["kind"] for each in hook.lists} == {"EventList"}
    items = [item for each in hook.lists for item in each["items"]]
    assert {item["auditID"] for item in items} == {f"h{number}" for number in range(5)}
    assert not any("kind" in item for item in items)


def test_a_webhook_beside_a_blocking_log_delays_no_request(tmp_path: Path) -> None:
    policy = write_policy(tmp_path, {"level": "Metadata"})
    with Hook() as hook:
        webhook = AuditWebhookSettings(config=hook.kubeconfig(tmp_path), most=1, wait=0.0)
        log = AuditLogSettings(path=str(tmp_path / "a.log"), mode="blocking-strict")
        settings = AuditSettings(policy=policy, log=log, webhook=webhook)
        with live_server(audit=settings) as server:
            answer = server.request("GET", "/version")
            eventually(lambda: len(hook.lists) == 2)

    assert answer.status == 200


def test_events_for_a_webhook_that_is_away_are_dropped_and_counted(tmp_path: Path) -> None:
    policy = write_policy(tmp_path, {"level": "Metadata"})
    with Hook() as gone:
        config = gone.kubeconfig(tmp_path)
    webhook = AuditWebhookSettings(config=config, most=1, wait=0.0, backoff=0.01, room=5)
    with live_server(audit=AuditSettings(policy=policy, webhook=webhook)) as server:
        answers = {server.request("GET", "/version").status for _ in range(50)}
        eventually(
            lambda: (
                'apiserver_audit_error_total{plugin="webhook"}'
                in server.request("GET", "/metrics").text
            )
        )

    assert answers == {200}


@pytest.mark.parametrize(
    ("policy", "more", "told"),
    [
        ("kind: Policy\napiVersion: audit.k8s.io/v1\nrules: []\n", (), "policy with 0 rules"),
        ("a: [", (), "it is no YAML"),
        (None, (), "No such file or directory"),
        ("fine", ("--audit-log-path", "/proc/nowhere/audit.log"), "cannot be written"),
        ("fine", ("--audit-webhook-config-file", "/nowhere"), "initializing audit webhook"),
    ],
)
def test_unusable_audit_settings_are_one_line_at_start(
    policy: str | None, more: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    path = tmp_path / "policy.yaml"
    if policy == "fine":
        write_policy(tmp_path, {"level": "Metadata"})
    elif policy is not None:
        path.write_text(policy)

    ran = subprocess.run(
        [
            *(sys.executable, "-m", "instar", "serve", "--listen", "127.0.0.1:0"),
            *("--storage", "memory:", "--audit-policy-file", str(path), *more),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ran.returncode == 2
    assert told in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1


UNHEARD = wrap_message("no.such/v1", "Unheard", b"")
PROTOBUF = "application/vnd.kubernetes.protobuf"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.mark.parametrize("mode", ["batch", "blocking", "blocking-strict"])
@pytest.mark.parametrize("format", ["json", "legacy"])
def test_no_request_ends_the_audit(tmp_path: Path, mode: str, format: str) -> None:
    """A body of a kind that no message is known of once ended the thread that writes the log."""
    log = {"mode": mode, "format": format}
    with audited(tmp_path, {"level": "RequestResponse"}, log=log) as (server, path):
        for name in ("POST", "PUT", "DELETE", "PATCH"):
            headers = {"Content-Type": PROTOBUF, "Accept": "text/nope"}
            server.request(name, REVIEWS, UNHEARD, token="carol-token", headers=headers)
        server.request("GET", "/version", token=None, headers={"Accept": PROTOBUF})
        server.request("GET", "/version", headers={"Audit-ID": "T-after"})
        eventually(lambda: b"T-after" in path.read_bytes())
        ready = server.request("GET", "/readyz").status

    assert ready == 200


def told(hook: Hook) -> set[str]:
    return {item["auditID"] for each in hook.lists for item in each["items"]}


def test_a_webhook_receives_all_events_although_one_must_be_truncated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(event: AuditEvent, **more: Any) -> bytes | None:
        if event.trail.id == "T-broken":
            raise RuntimeError("cannot be shown")
        return json_line(event, **more)

    monkeypatch.setattr(sinks, "json_line", fail)
    policy = write_policy(tmp_path, {"level": "Metadata"})
    with Hook() as hook:
        webhook = AuditWebhookSettings(config=hook.kubeconfig(tmp_path), most=400, wait=0.2)
        with live_server(audit=AuditSettings(policy=policy, webhook=webhook)) as server:
            for id in ("T-before", "T-broken", "T-after"):
                server.request("GET", "/version", headers={"Audit-ID": id})
            eventually(lambda: {"T-before", "T-broken", "T-after"} <= told(hook))

    assert FAILURES.value((sinks.WEBHOOK,)) >= 1
