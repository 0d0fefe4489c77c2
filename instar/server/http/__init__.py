"""HTTP server: connections, TLS, HTTP/1.1, messages and fairness between users.

``server/lifecycle/http_port.py`` opens it; the HTTP server calls the application
(``server/app.py``) with each request. The application interprets paths and bodies.
"""
