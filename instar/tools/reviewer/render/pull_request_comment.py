"""Posts a review as a comment on the pull request of a GitHub Actions job, and updates it in
place on the next run.

``instar review --comment`` calls ``post``. The job's environment names the repository, the API and
the token; the next run finds the comment by a hidden marker on its first line. The report itself is
made by ``markdown.py``.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

_PAGE = 100
_MOST_PAGES = 50
_TIMEOUT = 30.0
_FORBIDDEN_CODES = (403, 404)


class CommentFailed(Exception):
    """The comment could not be posted; ``str()`` says why in one line."""


class PullRequest(NamedTuple):
    """The pull request to comment on, and the token for it."""

    api: str
    repository: str
    number: int
    token: str
    run: str = ""
    """URL of the job's run, where the whole report is."""


def pull_request(environment: Mapping[str, str] = os.environ) -> PullRequest:
    """Return the pull request of the job that this process runs in."""
    missing = [
        name
        for name in ("GITHUB_REPOSITORY", "GITHUB_EVENT_PATH", "GITHUB_TOKEN")
        if not environment.get(name)
    ]
    if missing:
        raise CommentFailed(
            f"{', '.join(missing)} is not set: --comment works in a GitHub Actions job with "
            "GITHUB_TOKEN in its environment"
        )
    number = _number(Path(environment["GITHUB_EVENT_PATH"]))
    repository = environment["GITHUB_REPOSITORY"]
    server = environment.get("GITHUB_SERVER_URL", "https://github.com")
    run = environment.get("GITHUB_RUN_ID", "")
    return PullRequest(
        api=environment.get("GITHUB_API_URL", "https://api.github.com").rstrip("/"),
        repository=repository,
        number=number,
        token=environment["GITHUB_TOKEN"],
        run=f"{server}/{repository}/actions/runs/{run}" if run else "",
    )


def _number(event: Path) -> int:
    try:
        found = json.loads(event.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CommentFailed(f"{event}: cannot read the job's event: {error}") from None
    request = found.get("pull_request") if isinstance(found, dict) else None
    number = request.get("number") if isinstance(request, dict) else None
    if not isinstance(number, int):
        raise CommentFailed("the job's event is not a pull request, so there is none to comment on")
    return number


def marker(name: str) -> str:
    """Return the hidden first line of a comment; ``name`` distinguishes two reviews of one pull
    request.
    """
    plain = "".join(char for char in name if char.isalnum() or char in "/._-") or "."
    return f"<!-- instar review {plain} -->"


def post(request: PullRequest, name: str, text: str, *, quiet: bool) -> str:
    """Update the comment of an earlier run, or post a new one; return what was done. ``quiet``:
    there is nothing to report, so no new comment is made of it.
    """
    first = marker(name)
    body = f"{first}\n{text}"
    for number in _earlier(request, first):
        path = f"/repos/{request.repository}/issues/comments/{number}"
        try:
            _call(request, "PATCH", path, {"body": body})
            return "updated"
        except _HttpFailure as error:
            if error.code not in _FORBIDDEN_CODES:
                raise
            # another account's comment with the marker, or one deleted meanwhile
    if quiet:
        return "nothing to report"
    _call(request, "POST", f"{_comments(request)}", {"body": body})
    return "posted"


def _earlier(request: PullRequest, first: str) -> list[int]:
    """Return the ids of comments that begin with the marker, newest first."""
    found: list[int] = []
    for page in range(1, _MOST_PAGES + 1):
        path = f"{_comments(request)}?per_page={_PAGE}&page={page}"
        comments = _call(request, "GET", path)
        if not isinstance(comments, list):
            raise CommentFailed(f"{request.api}: the list of comments is not a list")
        found += [
            comment["id"]
            for comment in comments
            if isinstance(comment, dict)
            and str(comment.get("body") or "").startswith(first)
            and isinstance(comment.get("id"), int)
        ]
        if len(comments) < _PAGE:
            break
    return found[::-1]


def _comments(request: PullRequest) -> str:
    return f"/repos/{request.repository}/issues/{request.number}/comments"


class _HttpFailure(CommentFailed):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def _call(request: PullRequest, method: str, path: str, body: object = None) -> Any:
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {request.token}",
        "Content-Type": "application/json",
        "User-Agent": "instar",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    data = None if body is None else json.dumps(body).encode()
    url = f"{request.api}{path}"
    call = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(call, timeout=_TIMEOUT) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            raise _HttpFailure(error.code, _refusal(request, method, error)) from None
    except (OSError, ValueError) as error:
        raise CommentFailed(f"{request.api}: {error}") from None


def _refusal(request: PullRequest, method: str, error: urllib.error.HTTPError) -> str:
    try:
        reason = str(json.load(error)["message"])
    except (ValueError, KeyError, TypeError, OSError):
        reason = str(error.reason)
    text = f"{request.api} answered {error.code} to {method}: {' '.join(reason.split())}"
    if error.code in _FORBIDDEN_CODES:
        text += " (the job needs 'permissions: pull-requests: write'; forks do not get it)"
    return text
