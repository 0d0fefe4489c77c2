"""A kopf operator: it writes down what it has seen."""

import kopf


@kopf.on.startup()
def configure(settings, **_):
    settings.posting.enabled = False


@kopf.on.create("testing.example.com", "v1", "crontabs")
def scheduled(spec, patch, **_):
    patch.status["schedule"] = spec["cronSpec"]
