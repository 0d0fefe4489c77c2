"""The search for witnesses: objects made from schemas that prove a finding, checked by running."""
