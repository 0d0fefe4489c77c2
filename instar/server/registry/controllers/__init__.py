"""What happens after a write, by itself: CRDs come to rest, namespaces empty, migrations run."""
