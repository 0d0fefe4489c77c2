"""Who did what: the policy that says what is recorded, a request's trail, and events as text.

Pure: files, threads, webhooks and HTTP are ``server/``'s. Loaded only where a policy was given.
"""
