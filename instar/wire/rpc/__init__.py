"""gRPC client on HTTP/2, hand-written; messages are bytes.

Used by the etcd store and the KMS plugin client, which encode and decode the messages.
"""
