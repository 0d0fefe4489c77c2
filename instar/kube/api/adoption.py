"""The API by which ``instar adopt`` moves a group: its group, version, resource and paths.

Read by the server that takes the group (``server/endpoints/adoption.py``) and by the tool
(``tools/adopter``), so that both agree. An APIService routes it like the groups that are served.
"""

from __future__ import annotations

from urllib.parse import quote

GROUP = "adopt.instar.dev"
VERSION = "v1"
RESOURCE = "groups"
HOME = f"/apis/{GROUP}/{VERSION}"
API_SERVICE = f"{VERSION}.{GROUP}"
SERVED_BY = "X-Served-By"
"""Response header by which a tool sees which server answered behind an aggregation layer."""
SERVED_BY_INSTAR = "instar"
MOST_OBJECTS = 500
"""Objects of one request that puts objects, and of one page that reads them."""


def group_path(group: str, action: str = "") -> str:
    """Return the path of an action of the adoption API on a group."""
    path = f"{HOME}/{RESOURCE}/{quote(group, safe='')}"
    return f"{path}/{action}" if action else path
