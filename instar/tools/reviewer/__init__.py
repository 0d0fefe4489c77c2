"""The reviewer of CRD changes: rules find what breaks, witnesses prove it, reports tell it."""
