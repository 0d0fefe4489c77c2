"""ObjectMeta: its types, its rules, and resources embedded in resources."""
