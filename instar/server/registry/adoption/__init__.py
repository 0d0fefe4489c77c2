"""Groups that come from a main cluster with their objects: what ``instar adopt`` asks a server.

``server/endpoints/adoption.py`` calls it. Objects are put below the API, as they were: without
admission, validation or new identities. The order of the steps is the tool's (``tools/adopter``).
"""
