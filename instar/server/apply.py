"""Server-side apply over HTTP: the body is YAML, the rest is the registry's."""

from __future__ import annotations

from instar.registry.resources.context import Context, WriteOptions
from instar.registry.resources.resource import Target
from instar.registry.verbs.apply import apply_configuration
from instar.registry.verbs.write import Written
from instar.server.bodies import read_applied
from instar.server.request import Request


async def apply_patch(
    context: Context, request: Request, target: Target, options: WriteOptions, subresource: str
) -> Written:
    body = read_applied(request.content())
    return await apply_configuration(
        context, target, body.obj, body.duplicates, options, subresource
    )
