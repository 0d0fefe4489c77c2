"""``instar access``: writes roles from the requests a user made, and explains permissions.

``record`` reads ``/instar/access`` of the server; ``explain`` reads the cluster's RBAC objects.
``kube/access/rbac`` computes both.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import Any

from instar.base.errors import ApiError, NotFound
from instar.cli.shared.cluster_flags import with_client
from instar.cli.shared.common_flags import add_cluster_arguments
from instar.cli.shared.failure import CliFailure
from instar.kube.access.attributes import (
    AUTHENTICATED,
    Attributes,
    User,
    account_groups,
    account_of,
)
from instar.kube.access.rbac.explanations import Explanation, GrantReason, explain
from instar.kube.access.rbac.least_privilege import RequestUse, grants, manifests, not_covered
from instar.kube.access.rbac.policy import GROUP, RbacPolicy
from instar.kube.access.rbac.rules import PolicyRule, rules_of
from instar.kube.api.encoding.yaml_text import write_yaml
from instar.kube.cel.time_text import parse_duration
from instar.wire.client.client import Client
from instar.wire.client.paths import resource_path

_EVERYBODYS = ("system:discovery", "system:basic-user", "system:public-info-viewer")
_SECOND = 1_000_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    below = parser.add_subparsers(dest="what", required=True, metavar="ACTION", help="what to do")
    record = below.add_parser(
        "record", help="print roles that cover the requests a user made, as manifests"
    )
    record.add_argument("user", metavar="USER", help="NAME, or system:serviceaccount:NS:NAME")
    record.add_argument("--since", metavar="TIME", help="10m, or 2026-11-16T03:00:00Z")
    record.add_argument("--for", dest="subject", metavar="USER", help="bind the roles to this user")
    record.add_argument("--name", metavar="NAME", default="", help="name of the roles")
    record.add_argument(
        "--everywhere", action="store_true", help="one ClusterRole instead of a Role per namespace"
    )
    add_cluster_arguments(record)
    asking = below.add_parser(
        "explain", help="show which rule of which role allows a request, or why none does"
    )
    asking.add_argument("user", metavar="USER", help="NAME, or system:serviceaccount:NS:NAME")
    asking.add_argument("verb", metavar="VERB", help="get, list, watch, create, update, delete, …")
    asking.add_argument("resource", metavar="RESOURCE", help="foos.ex.io[/status], pods, or /path")
    asking.add_argument(
        "--namespace",
        "-n",
        metavar="NAME",
        default="",
        help="namespace (default: cluster scope, or all namespaces)",
    )
    asking.add_argument("--name", metavar="NAME", default="", help="name of one object")
    asking.add_argument(
        "--group",
        metavar="NAME",
        action="append",
        default=[],
        help="a group of the user; may be repeated",
    )
    add_cluster_arguments(asking)


def run(args: argparse.Namespace) -> int:
    work = _record if args.what == "record" else _explain
    return with_client(args, lambda client: work(args, client), user_agent="instar-access")


# --- record -------------------------------------------------------------------------------------


async def _record(args: argparse.Namespace, client: Client) -> int:
    since = _moment(args.since)
    try:
        document = await client.get("/instar/access", user=args.user)
    except NotFound:
        raise CliFailure("this server keeps no access record; only instar servers do") from None
    if document.get("ofSeveralProcesses"):
        raise CliFailure(
            "this server has several processes, and each records only its own requests: "
            "record on one (instar serve --workers 1)"
        )
    found = [line for line in document["uses"] if since is None or _read(line["last"]) >= since]
    if since is not None and since < _read(document["since"]):
        print(f"# The record begins at {document['since']}.")
    uses = not_covered(map(_use, found), await _common_rules(client))
    if not uses:
        raise CliFailure(f"the record holds no request of {args.user} that needs a role")
    name = args.name or _role_name(args.subject or args.user)
    objects = list(manifests(uses, name, args.subject or args.user, everywhere=args.everywhere))
    if grants(uses):
        print("# It writes roles or bindings: it must hold what these grant, or may escalate/bind.")
    print("---\n".join(write_yaml(obj).decode() for obj in objects), end="")
    return 0


def _use(line: dict[str, Any]) -> RequestUse:
    names = ("verb", "group", "resource", "subresource", "namespace", "path")
    return RequestUse(*(str(line.get(name, "")) for name in names))


async def _common_rules(client: Client) -> list[PolicyRule]:
    """Return the rules that every authenticated user has, which need no role."""
    found: list[PolicyRule] = []
    for name in _EVERYBODYS:
        try:
            role = await client.get(resource_path(GROUP, "v1", "clusterroles", name=name))
        except ApiError:
            continue  # the rules are then listed although they are not needed
        found += rules_of(role)
    return found


def _role_name(user: str) -> str:
    account = account_of(user)
    plain = account[1] if account is not None else user
    return "".join(char if char.isalnum() or char in "-." else "-" for char in plain)


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    ago = parse_duration(text)
    if ago is not None:
        return datetime.now(UTC) - timedelta(seconds=ago / _SECOND)
    try:
        return _read(text)
    except ValueError:
        raise CliFailure(f"--since {text}: expected 10m or 2026-11-16T03:00:00Z", code=2) from None


def _read(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


# --- explain ------------------------------------------------------------------------------------


async def _explain(args: argparse.Namespace, client: Client) -> int:
    policy, namespaces = await _policy(client)
    asked = await _requested_attributes(args, client)
    found = explain(policy, asked, namespaces)
    print("\n".join(_explanation_lines(asked, found)))
    return 0 if found.allowed else 1


async def _policy(client: Client) -> tuple[RbacPolicy, tuple[str, ...]]:
    policy, namespaces = RbacPolicy(), set()
    for plural, put in (
        ("clusterroles", policy.put_role),
        ("roles", policy.put_role),
        ("clusterrolebindings", policy.put_binding),
        ("rolebindings", policy.put_binding),
    ):
        async for page in client.pages(resource_path(GROUP, "v1", plural)):
            for obj in page.get("items") or ():
                namespace = obj["metadata"].get("namespace", "")
                namespaces.add(namespace)
                put((namespace, obj["metadata"]["name"]), obj)
    return policy, tuple(sorted(namespaces - {""}))


async def _requested_attributes(args: argparse.Namespace, client: Client) -> Attributes:
    account = account_of(args.user)
    implied = account_groups(account[0]) if account is not None else ()
    user = User(args.user, tuple(dict.fromkeys((*args.group, *implied, AUTHENTICATED))))
    if args.resource.startswith("/"):
        return Attributes(user, args.verb, path=args.resource)
    whole, _, subresource = args.resource.partition("/")
    resource, dot, group = whole.partition(".")
    if not dot:
        group = await _group_of(client, resource)
    return Attributes(user, args.verb, group, "", resource, subresource, args.namespace, args.name)


async def _group_of(client: Client, resource: str) -> str:
    """Return the API group of a plural: the core group if it has the plural, else the first
    other.
    """
    core = await client.get("/api/v1")
    if any(item["name"] == resource for item in core.get("resources") or ()):
        return ""
    for group in (await client.get("/apis")).get("groups") or ():
        version = group["preferredVersion"]["groupVersion"]
        document = await client.get(f"/apis/{version}")
        if any(item["name"] == resource for item in document.get("resources") or ()):
            return str(group["name"])
    return ""


def _explanation_lines(asked: Attributes, found: Explanation) -> list[str]:
    if found.by_group:
        return [f"allowed: {_question(asked)}", f"  members of {found.by_group} may do everything"]
    if found.allowed:
        return [f"allowed: {_question(asked)}", *(_reason(each) for each in found.reasons)]
    lines = [f"refused: {_question(asked)}"]
    if not found.bound:
        lines.append("  no binding names this user or one of these groups here")
    for each in found.near:
        lines.append(f"{_reason(each)}")
        lines.append(f"    does not cover {each.unfit[0]}")
    if found.elsewhere:
        lines.append(f"  allowed in the namespaces: {', '.join(found.elsewhere)}")
    lines += (f"  missing: {text}" for text in found.missing)
    if found.bound and not (found.near or found.elsewhere or found.missing):
        lines.append(f"  {found.bound} bindings apply, and none of their rules comes close")
    return lines


def _question(asked: Attributes) -> str:
    user = f"{asked.user.name} ({', '.join(asked.user.groups)})"
    if not asked.resource:
        return f"{user} {asked.verb} {asked.path}"
    name = f"{asked.resource}.{asked.group}" if asked.group else asked.resource
    name += f"/{asked.subresource}" if asked.subresource else ""
    one = f" {asked.name}" if asked.name else ""
    where = f"in namespace {asked.namespace}" if asked.namespace else "in the whole cluster"
    return f"{user} {asked.verb} {name}{one} {where}"


def _reason(each: GrantReason) -> str:
    grant = each.grant
    return (
        f"  {grant.bound} binds {grant.subject_kind} {grant.subject_name} to {grant.role_kind} "
        f"{grant.role_name}, rule {each.position}: {each.rule}"
    )
