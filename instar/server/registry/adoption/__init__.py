"""Adoption of API groups with their objects from a main cluster: the server's side of
``instar adopt``.

``server/endpoints/adoption.py`` calls it. Objects are written as they were in the main
cluster, without admission, validation or new uids. The order of the steps is in ``tools/adopter``.
"""
