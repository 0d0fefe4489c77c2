"""REST layer: requests for objects, from options and bodies to the bytes of the response.

``server/app.py`` calls ``verbs.py`` and ``subresources.py``; the registry applies the rules.
"""
