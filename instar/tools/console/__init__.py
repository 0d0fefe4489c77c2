"""The web console: what version work looks like, for people.

It sees a cluster as its user does: every answer is made of requests to the Kubernetes API with the
user's own credentials, and of what a server of ours tells besides under ``/instar/``. It keeps
nothing: who is signed in is in a sealed cookie.
"""
