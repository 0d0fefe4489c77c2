"""Built-in kinds: defaults, validation hooks and table columns that are special to each."""
