"""Server-side apply over HTTP: the body is YAML, the rest is the registry's."""

from __future__ import annotations

from instar.errors import BadRequest
from instar.registry.resources.context import Context, WriteOptions
from instar.registry.resources.resource import Target
from instar.registry.verbs.apply import apply_configuration
from instar.registry.verbs.write import Written
from instar.server.bodies import Malformed, parse
from instar.server.negotiate import JSON, YAML
from instar.server.request import Request


async def apply_patch(
    context: Context, request: Request, target: Target, options: WriteOptions, subresource: str
) -> Written:
    media = JSON if request.content().lstrip()[:1] == b"{" else YAML
    try:
        body = parse(request.content(), media)
    except Malformed as error:
        raise BadRequest(f"error decoding YAML: {error}") from error
    return await apply_configuration(
        context, target, body.obj, body.duplicates, options, subresource
    )
