"""HTTP/2 as bytes: frames (RFC 9113) and header blocks (RFC 7541).

``wire/rpc`` uses it as a client, ``server/http/http2`` as a server. Connections, streams and flow
control are there.
"""
