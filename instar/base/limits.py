"""Limits on requests: sizes, depths, counts, deadlines and memory in flight.

The server, the storage and the tools use these constants, which are in one module for comparison.
``docs/reference/limits.md`` lists them with upstream's, and a test checks that the lists agree.
"""

from __future__ import annotations

KIB, MIB = 1 << 10, 1 << 20

# --- one request -----------------------------------------------------------------------------

MAX_HEAD = 64 * KIB
"""Bytes of a request's line and headers; also of what may come between two bytes of its body (chunk
sizes, their extensions, trailers)."""

MAX_BODY = 3 * MIB
"""Bytes of a request's body."""

MAX_STORED = 8 * MIB
"""Bytes of a stored object: with its defaults, changes by admission and conversion, and its
managedFields."""

MAX_DEPTH = 240
"""Levels of nesting in JSON and YAML."""

MAX_ERRORS_TOLD = 1000
"""Validation errors in one response."""

MAX_REFUSAL = 1 * MIB
"""Bytes of such errors; the first is included however large it is."""

HANDSHAKE_SECONDS = 32.0
"""Time from accepting a connection to the end of its TLS handshake."""

HEAD_SECONDS = 32.0
"""Time from the first byte of a request to the end of its headers."""

BODY_SECONDS = 60.0
"""Time from the end of a request's headers to the end of its body."""

SILENT_SECONDS = 30.0
"""Time without a byte in the middle of a request."""

IDLE_SECONDS = 180.0
"""Time without a request on an open connection."""

# --- answers ---------------------------------------------------------------------------------

UNREAD_SECONDS = 60.0
"""Time in which a client reads nothing of a waiting response."""

MAX_PIPELINED = 16
"""Pipelined requests of one connection that wait for an earlier response."""

MAX_STREAMS = 1000
"""Unfinished requests, watches among them, of one HTTP/2 connection."""

STREAM_WINDOW = 256 * KIB
"""Bytes of a request's body that an HTTP/2 client may send before the server has read them."""

CONNECTION_WINDOW = 1 * MIB
"""Such bytes of all requests of one HTTP/2 connection."""

CONTROL_FRAMES = 2000
"""HTTP/2 frames without progress (resets, pings, settings, priorities, window updates, empty data)
that a client may send at once."""

CONTROL_FRAMES_PER_SECOND = 500
"""Such frames that a client may go on sending."""

UNREAD_ANSWERS = 4 * MIB
"""Bytes of small responses that one HTTP/2 client has not read; above it further requests of the
connection wait."""

TURN_SECONDS = 0.02
"""Time that requests may take in one iteration of the event loop; further requests are queued."""

WRITE_BUFFER = 256 * KIB
"""Bytes of responses buffered in one connection before the server stops producing more for it."""

MAX_ANSWERS_IN_FLIGHT = 512 * MIB
"""Bytes of large responses being sent to all clients; above it the slowest are disconnected."""

MAX_BODIES_IN_FLIGHT = 256 * MIB
"""Bytes of large request bodies being received from all clients; above it the next is rejected."""

# --- users ------------------------------------------------------------------------------------

READS_AT_ONCE = 400
"""Seats for requests; with ``WRITES_AT_ONCE``, what the priority levels divide among themselves."""

WRITES_AT_ONCE = 200
"""Seats for requests; see ``READS_AT_ONCE``."""

BEGUN_PER_TURN = 8
"""Seats that requests of one flow take in one loop iteration while other flows have requests."""

# --- the event loop --------------------------------------------------------------------------

LOOP_BYTES = 16 * KIB
"""Bytes of input that one step may process in the event loop; more goes to a thread."""

MAX_GRANT_COMPARISONS = 1_000_000
"""Steps of the RBAC escalation check, which compares a role's rules with its writer's."""

LARGE_AT_ONCE = 2
"""Threads for work that is too large for the event loop."""

LARGE_WAITING = 200
"""Work items that may wait for such a thread; the next is answered 429."""

LARGE_BACKGROUND = 10_000
"""Work items of controllers that may wait for the one thread they have for large work."""

JUDGING_SECONDS = 2.0
"""Processor time for validating one object by its schema; after that the object is refused."""

JOBS_AT_ONCE = 2
"""Reviews and checks that the console runs at once, each in its own process."""

JOBS_WAITING = 32
"""Such console jobs that may wait; the next is answered 429."""

JOBS_PER_USER = 4
"""Such console jobs of one user, running or waiting; the next is answered 429."""

LOOP_HELD_SECONDS = 0.25
"""Processor time of one step in the event loop above which the log names the step."""

# --- CRDs -------------------------------------------------------------------------------------

MAX_SCHEMA_NODES = 50_000
"""Schemas inside the schema of one CRD version: properties, items and branches together."""

COMPILED_SCHEMAS = 64 * MIB
"""Bytes of schemas (as JSON) that are kept compiled; the least recently used are compiled again
on demand. A compiled form takes about four times as much memory."""

OPENAPI_DOCUMENTS = 32 * MIB
"""Bytes of cached OpenAPI v3 documents."""

OPENAPI_PARTS = 192 * MIB
"""Bytes of cached parts of the OpenAPI v2 document, compressed to a fifth."""

# --- snapshots and other copies of clusters ----------------------------------------------------

MAX_LINE = 8 * MIB
"""Bytes of one object in a snapshot, or of one document in a folder or dump."""

MAX_ARCHIVE_FILES = 5_000_000
"""Files in an archive."""

MAX_ARCHIVE_RATIO = 300
"""Times its own size that an archive may unpack to, above 256 MiB."""

# --- history ------------------------------------------------------------------------------------

HISTORY_BYTES = 1024 * MIB
"""Bytes of overwritten and deleted values that are kept, whatever their age, unless
``--history-size`` says otherwise; beyond it the oldest are dropped early."""

HISTORY_WRITES = 500_000
"""Overwritten and deleted values that are kept; each takes about 200 bytes of memory."""

HISTORY_AT_ONCE = 200
"""Revisions of one object in one response."""

HISTORY_READ_AT_ONCE = 16 * MIB
"""Bytes of values in one history response; larger histories are paged."""

HISTORY_CHANGES = 100
"""Changed paths listed for one revision."""
