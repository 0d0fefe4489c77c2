"""Authentication and authorization of HTTP requests, with impersonation and access reviews.

``server/app.py`` calls it for every request, before the verb.
"""
