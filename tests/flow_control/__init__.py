"""Tests of API priority and fairness: rules, seats, queues, and a server under load."""
