"""API priority and fairness: which request begins now, which waits in a queue, which is rejected.

``server/app.py`` asks ``flow_control.FlowControl`` for each request between impersonation and
authorization. Rules and arithmetic are in ``instar/kube/flow_control``; here are the requests in
flight, the stored configuration, metrics and the debug pages.
"""
