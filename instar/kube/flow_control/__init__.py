"""API priority and fairness as pure functions: which FlowSchema matches a request, how many seats a
priority level has, how many a request takes.

``instar/server/flow_control`` calls it; nothing here knows requests in flight, clocks or objects in
a store.
"""
