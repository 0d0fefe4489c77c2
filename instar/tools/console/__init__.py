"""The web console: pages for versions, migrations, reviews and webhooks of CRDs.

The console shows a cluster as its user may see it: every answer is built from Kubernetes API
requests with the user's own credentials, plus the ``/instar/…`` endpoints of instar servers. The
console keeps no state: the session is an encrypted cookie.
"""
