"""What pages need besides the Kubernetes API: each a document made of requests with the rights of
whoever looks. A view knows a ``Client`` and nothing of HTTP."""
