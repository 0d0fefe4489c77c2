"""Built-in admission plugins, under upstream's names; ``lifecycle/admission_setup.py`` creates
them."""
