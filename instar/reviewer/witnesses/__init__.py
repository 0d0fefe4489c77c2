"""The search for witnesses: objects that prove a finding, made from the schemas and checked by running."""
