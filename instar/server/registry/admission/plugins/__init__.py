"""Built-in admission plugins, under upstream's names; ``admission_setup.py`` creates them."""
