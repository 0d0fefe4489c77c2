"""HTTP client for webhooks: addresses, TLS, connections, deadlines, and Go's error texts.

Called by conversion (``wire/conversion``) and admission (``server/registry/admission/webhooks``),
which build the requests and check the answers.
"""
