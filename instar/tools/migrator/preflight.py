"""Read-only preflight checks of a migration: permissions, webhook health, counts and speed.

Called by ``instar migrate``, ``instar upgrade`` and the console's migration view. Writes are sent
as dry runs only.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from statistics import median
from typing import NamedTuple

from cryptography import x509

from instar.base.errors import ApiError
from instar.base.json_values import Object
from instar.tools.migrator.census.version_census import exact_census
from instar.tools.migrator.listed_object import ListedObject
from instar.tools.migrator.live_crd import LiveCrd, key_of, read_live_crd
from instar.tools.migrator.object_pages import Lister
from instar.tools.migrator.object_writer import StorageVersionRewriter
from instar.tools.migrator.outcomes import ObjectResult
from instar.tools.migrator.plan import Facts
from instar.tools.migrator.retries import RetryPolicy, call_with_retries
from instar.tools.migrator.rewrite_checks.rewrite_checker import RewriteChecker
from instar.wire.client.client import Client
from instar.wire.client.paths import crd_path

_SAMPLES = 80
_BRIEF = RetryPolicy(attempts=3)
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_EXPIRY_WARNING = timedelta(days=14)


async def fetch_crd(client: Client, name: str) -> LiveCrd:
    return read_live_crd(await call_with_retries(lambda: client.get(crd_path(name)), _BRIEF))


async def run_preflight(
    client: Client,
    live: LiveCrd,
    *,
    via_status: bool,
    dry_run: bool = False,
    concurrency: int = 8,
) -> Facts:
    """Run all checks. Raises ``ApiError`` only if the server cannot be reached."""
    version = await call_with_retries(lambda: client.get("/version"), _BRIEF)
    census = await exact_census(client)
    trouble: dict[str, str] = {}
    total: int | None = None
    sample: list[Object] = []
    reading = 0.0
    for name in live.read_versions:
        try:
            listing = partial(_timed_list, client, live.path(name))
            page, seconds = await call_with_retries(listing, _BRIEF)
        except ApiError as error:
            trouble[name] = error.message
            continue
        reading += seconds / max(len(page.get("items") or ()), 1)
        if total is None:
            total, sample = _count(page), page.get("items") or []
    once = RetryPolicy(attempts=1)
    lister = Lister(client, live, once, verify=False)
    checker = RewriteChecker(client, live, once)
    writer = StorageVersionRewriter(
        client, live, once, lister, checker, dry_run=True, via_status=via_status
    )
    trial = await _try_writes(writer, sample, concurrency)
    warnings = list(_warnings(live))
    if trial.passed:
        warnings += [
            f"{name} cannot be listed now, so its objects are read one by one, which takes longer "
            f"than expected: {why}"
            for name, why in trouble.items()
        ]
        trouble = {}
    elif trial.trouble and not trouble:
        trouble = {live.write_version: trial.trouble}
    return Facts(
        server=client.access.server,
        is_instar="+instar." in str(version.get("gitVersion", "")),
        objects=total,
        census=None if census is None else census.get(live.name),
        missing_permissions=tuple(await _missing(client, live, via_status, dry_run)),
        version_trouble=trouble,
        warnings=tuple(warnings),
        seconds_per_write=trial.seconds,
        seconds_per_read=reading,
    )


async def _timed_list(client: Client, path: str) -> tuple[Object, float]:
    """Return a page and its duration; failed attempts do not count."""
    began = time.monotonic()
    page = await client.list(path, limit=_SAMPLES)
    return page, time.monotonic() - began


def _count(page: Object) -> int | None:
    meta = page.get("metadata") or {}
    rest = meta.get("remainingItemCount", 0 if not meta.get("continue") else None)
    return None if rest is None else len(page.get("items") or ()) + int(rest)


async def _missing(client: Client, live: LiveCrd, via_status: bool, dry_run: bool) -> list[str]:
    crd = live.crd
    plural = crd.names.plural
    needed = [
        ("list", crd.group, plural, ""),
        ("get", crd.group, plural, ""),
        ("patch", crd.group, plural, "status" if via_status else ""),
        ("get", "apiextensions.k8s.io", "customresourcedefinitions", ""),
    ]
    if not dry_run:
        needed.append(("patch", "apiextensions.k8s.io", "customresourcedefinitions", "status"))
    missing = []
    for verb, group, resource, subresource in needed:
        attributes = {"verb": verb, "group": group, "resource": resource}
        if subresource:
            attributes["subresource"] = subresource
        if resource == "customresourcedefinitions":
            attributes["name"] = live.name
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        try:
            answer = await client.post(_REVIEWS, review)
        except ApiError:
            continue
        if not (answer.get("status") or {}).get("allowed"):
            missing.append(f"{verb} {resource}{'/' if subresource else ''}{subresource}.{group}")
    return missing


def _warnings(live: LiveCrd) -> Iterable[str]:
    crd = live.crd
    if live.storage not in crd.served():
        yield f"the storage version {live.storage} is not served; writing at {live.write_version}"
    client = crd.conversion.client
    if crd.conversion.strategy != "Webhook" or client is None or not client.ca_bundle:
        return
    expires = _expiry(client.ca_bundle)
    if expires is None:
        yield "the webhook's caBundle cannot be read"
    elif expires < datetime.now(UTC):
        yield f"the webhook's caBundle expired on {expires:%Y-%m-%d}"
    elif expires - datetime.now(UTC) < _EXPIRY_WARNING:
        yield f"the webhook's caBundle expires on {expires:%Y-%m-%d}"


def _expiry(bundle: str) -> datetime | None:
    """Return the earliest expiry time of the certificates of a caBundle."""
    try:
        certificates = x509.load_pem_x509_certificates(base64.b64decode(bundle))
    except ValueError:
        return None
    return min((item.not_valid_after_utc for item in certificates), default=None)


class _Trial(NamedTuple):
    seconds: float | None
    """What one no-op write takes, with others beside it."""
    passed: bool
    """At least one would be accepted (or there was nothing to try)."""
    trouble: str


async def _try_writes(
    writer: StorageVersionRewriter, sample: list[Object], concurrency: int
) -> _Trial:
    """Send dry runs with the concurrency of the run, to see whether the webhook works and how fast.

    The median counts, because one object that no webhook converts may take as long as all others.
    """
    outcomes: list[ObjectResult] = []
    durations: list[float] = []
    queue = iter(sample)

    async def work(most: int) -> None:
        for obj in islice(queue, most):
            metadata = obj["metadata"]
            revision, uid = metadata.get("resourceVersion", ""), metadata.get("uid", "")
            began = time.monotonic()
            outcomes.append(await writer.rewrite(ListedObject(key_of(obj), uid, revision)))
            durations.append(time.monotonic() - began)

    # The first write of each worker opens its connection; that is paid once, not per object.
    warm = concurrency if len(sample) >= 2 * concurrency else 0
    if warm:
        await asyncio.gather(*(work(1) for _ in range(concurrency)))
        durations.clear()
    await asyncio.gather(*(work(len(sample)) for _ in range(concurrency)))
    if not outcomes:
        return _Trial(None, True, "")
    seconds = median(durations or [0.0]) / min(concurrency, len(sample))
    down = [outcome.message for outcome in outcomes if outcome.outage]
    passed = len(down) < len(outcomes)
    return _Trial(seconds, passed, f"writes fail: {down[0]}" if down else "")
