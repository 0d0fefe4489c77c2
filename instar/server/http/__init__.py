"""HTTP server: connections, TLS, HTTP/1.1, messages and fairness between users. Bytes only."""
