"""Whether a request comes from our own page: what another site can make a browser send is refused.

Three things, each enough by itself in today's browsers: a header that only a script of our own
origin can add, what the browser says about where the request comes from, and the origin it names.
"""

from __future__ import annotations

from instar.base.errors import Forbidden
from instar.server.http.messages import Request
from instar.tools.console.routing import HEADER, is_followed_link


def is_of_our_page(request: Request) -> bool:
    """Whether it carries the header of the page."""
    return HEADER in request.headers


def may_show_cookie(request: Request) -> bool:
    """A cookie counts on requests of the page, and for a link that was followed."""
    return is_of_our_page(request) or is_followed_link(request)


def check_origin(request: Request, scheme: str) -> None:
    """Raises ``Forbidden`` for a request that the browser says is another site's."""
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
    """Against names of other sites that were made to point to this machine."""
    host = request.header(b"host")
    if host not in allowed:
        raise Forbidden(f"nothing is served under the name {_shown(host)}", details={})


def _shown(text: str) -> str:
    return text[:200]
