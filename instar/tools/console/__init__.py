"""The web console: pages for versions, migrations, reviews and webhooks of CRDs.

It sees a cluster as its user does: every answer is built from Kubernetes API requests with the
user's own credentials, plus ``/instar/…`` of our servers. It keeps no state: the session is an
encrypted cookie.
"""
