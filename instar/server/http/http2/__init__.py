"""HTTP/2: a second framing of the requests that ``http1.py`` serves, many at once on a connection.

``protocols.py`` makes a connection for each client that chose ``h2`` in its TLS handshake. Handlers
do not learn which version a request came by. Frames and header blocks are in ``base/http2``.
"""
