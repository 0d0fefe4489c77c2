"""Connections: TLS, HTTP/1.1 and whose turn it is. Knows no path and no object."""
