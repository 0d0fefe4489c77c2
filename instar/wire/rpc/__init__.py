"""A gRPC client on HTTP/2. The etcd store and KMS plugins call it; it sees messages as bytes."""
