"""CSRF protection: accepts only requests of the console's own page.

Called by ``authentication.py``, ``pages.py`` and ``listening.py``. There are three checks, each of
which is sufficient in current browsers: a header that only scripts of the console's origin can add,
Sec-Fetch-Site, and Origin.
"""

from __future__ import annotations

from instar.base.errors import Forbidden
from instar.server.http.messages import Request
from instar.tools.console.routing import HEADER, is_followed_link


def is_of_our_page(request: Request) -> bool:
    """Return whether the request carries the header of our page."""
    return HEADER in request.headers


def may_show_cookie(request: Request) -> bool:
    """Return whether a cookie is accepted: on requests of the page, and when a link is followed."""
    return is_of_our_page(request) or is_followed_link(request)


def check_origin(request: Request, scheme: str) -> None:
    """Raise ``Forbidden`` for a request that the browser marks as another site's."""
    if is_followed_link(request):
        return
    site = request.header(b"sec-fetch-site")
    if site not in ("", "same-origin"):
        raise Forbidden(
            f"the request comes from another site (Sec-Fetch-Site: {_shown(site)})", details={}
        )
    origin = request.header(b"origin")
    if origin and origin != f"{scheme}://{request.header(b'host')}":
        raise Forbidden(
            f"the request comes from another origin ({_shown(origin)}), not from the console",
            details={},
        )


def check_host(request: Request, allowed: frozenset[str]) -> None:
    """Raise for a Host that is not ours, against DNS rebinding."""
    host = request.header(b"host")
    if host not in allowed:
        raise Forbidden(f"nothing is served under the name {_shown(host)}", details={})


def _shown(text: str) -> str:
    return text[:200]
