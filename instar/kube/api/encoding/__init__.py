"""Text forms of objects: JSON, YAML, PEM and base64 as Go reads and writes them."""
