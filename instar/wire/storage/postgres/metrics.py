"""Metrics of the PostgreSQL store.

Filled by the other modules of the package; ``store.py`` passes them to the server, which serves
them at ``/metrics``.
"""

from __future__ import annotations

from instar.base.metrics import Counter, Histogram, Measured, Metric

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_WRITES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
"""Upper bounds of histogram buckets: of durations, and of numbers of writes."""


class PostgresMetrics:
    def __init__(self) -> None:
        self.feed_lag = 0
        self.table_bytes = 0
        self.snapshot_age = 0
        self._commit_seconds = Histogram(
            "instar_postgres_commit_seconds",
            "Time from sending a batch to its answer.",
            (),
            _SECONDS,
        )
        self._batch_writes = Histogram(
            "instar_postgres_batch_writes",
            "Writes that one batch committed together.",
            (),
            _WRITES,
        )
        self._barrier_seconds = Histogram(
            "instar_postgres_barrier_seconds",
            "Time to ask the primary for its revision, shared by all reads that wait.",
            (),
            _SECONDS,
        )
        self.settlements = Counter(
            "instar_postgres_settlements_total",
            "Batches whose answer was lost, by what became of them.",
            ("outcome",),
        )
        self.feed_reads = Counter(
            "instar_postgres_feed_reads_total", "Reads of the log for followers."
        )
        self.swept = Counter("instar_postgres_swept_rows_total", "Rows that compaction deleted.")
        self.vacuums = Counter(
            "instar_postgres_vacuums_total", "VACUUM after a compaction, by outcome.", ("outcome",)
        )

    def all(self) -> list[Metric]:
        return [
            self._commit_seconds,
            self._batch_writes,
            self._barrier_seconds,
            self.settlements,
            self.feed_reads,
            self.swept,
            self.vacuums,
            Measured(
                "instar_postgres_feed_lag_revisions",
                "Revisions between the primary's, as last heard, and the last that followers have.",
                (),
                lambda: [((), self.feed_lag)],
            ),
            Measured(
                "instar_postgres_table_bytes",
                "Size of the log with its indexes, at the last compaction.",
                (),
                lambda: [((), self.table_bytes)],
            ),
            Measured(
                "instar_postgres_oldest_snapshot_transactions",
                "Transactions since the oldest snapshot on the server; VACUUM keeps what it sees.",
                (),
                lambda: [((), self.snapshot_age)],
            ),
        ]

    def committed(self, writes: int, seconds: float) -> None:
        self._batch_writes.observe((), writes)
        self._commit_seconds.observe((), seconds)

    def passed_barrier(self, seconds: float) -> None:
        self._barrier_seconds.observe((), seconds)

    @property
    def commits(self) -> int:
        return self._commit_seconds.count(())
