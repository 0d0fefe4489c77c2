"""How much anybody may ask for: sizes, depths, counts, deadlines, memory in flight.

One place, so that they can be weighed against each other; ``docs/limits.md`` says what upstream's
are, and a test keeps the two together. Numbers only: no behaviour lives here.
"""

from __future__ import annotations

KIB, MIB = 1 << 10, 1 << 20

# --- one request -----------------------------------------------------------------------------

MAX_HEAD = 64 * KIB
"""Raw bytes of a request's line and headers; also of what may come between two bytes of its body
(chunk sizes, their extensions, trailers)."""

MAX_BODY = 3 * MIB
"""Bytes of a request's body."""

MAX_DEPTH = 240
"""Levels of nesting in JSON and YAML."""

HANDSHAKE_SECONDS = 32.0
"""From a connection to the end of its TLS handshake."""

HEAD_SECONDS = 32.0
"""From the first byte of a request to the end of its headers."""

BODY_SECONDS = 60.0
"""From there to the end of its body."""

SILENT_SECONDS = 30.0
"""Without a byte in the middle of a request."""

IDLE_SECONDS = 180.0
"""Without a request on an open connection."""

# --- answers ---------------------------------------------------------------------------------

UNREAD_SECONDS = 60.0
"""In which a client takes nothing of an answer that waits for it."""

MAX_PIPELINED = 16
"""Requests of one connection that wait for the answer to an earlier one."""

TURN_SECONDS = 0.02
"""Of one turn of the event loop for requests; what goes beyond stands in line."""

WRITE_BUFFER = 256 * KIB
"""Bytes of answers that wait in one connection before no more are made for it."""

MAX_ANSWERS_IN_FLIGHT = 512 * MIB
"""Bytes of large answers being read by all clients together; above it the slowest are cut off."""

MAX_BODIES_IN_FLIGHT = 256 * MIB
"""Bytes of large bodies being sent by all clients together; above it the next is turned away."""

# --- users ------------------------------------------------------------------------------------

READS_AT_ONCE = 400
"""Requests that read and are not finished, of all users who are no administrators."""

WRITES_AT_ONCE = 200
"""The same of those that write."""

WAITING_PER_USER = 1000
"""Requests of one user that wait for their turn, reading and writing apart; the next gets 429."""

BEGUN_PER_TURN = 8
"""Requests of one user begun in one turn of the event loop while others are about."""

# --- the event loop --------------------------------------------------------------------------

LOOP_BYTES = 16 * KIB
"""Of input that one step may work on in the event loop; more goes to a thread."""

MAX_GRANT_COMPARISONS = 1_000_000
"""Steps it may take to compare what a role grants with what its writer holds."""

LARGE_AT_ONCE = 2
"""Threads for such work."""

LARGE_WAITING = 200
"""Pieces of such work that may wait for a thread; the next is answered 429."""

JOBS_AT_ONCE = 2
"""Reviews and checks that the console makes, each in a process of its own."""

JOBS_WAITING = 8
"""Of those, how many may wait for their turn; the next is answered 429."""

LOOP_HELD_SECONDS = 0.25
"""Processor time of one step in the event loop above which the log names who took it."""

# --- CRDs -------------------------------------------------------------------------------------

COMPILED_SCHEMAS = 64 * MIB
"""Of schemas, as JSON, whose compiled forms are kept; those used least are made again when wanted.
A form takes about four times as much memory."""

OPENAPI_DOCUMENTS = 32 * MIB
"""Of OpenAPI v3's documents that are kept."""

OPENAPI_PARTS = 192 * MIB
"""Of the parts of OpenAPI v2's document, packed to a fifth."""

# --- snapshots and other copies of clusters ----------------------------------------------------

MAX_LINE = 8 * MIB
"""Bytes of one object in a snapshot, or of one document in a folder or dump."""

MAX_ARCHIVE_FILES = 5_000_000
"""Files in an archive."""

MAX_ARCHIVE_RATIO = 300
"""Times its own size that an archive may unpack to, above 256 MiB."""

# --- history ------------------------------------------------------------------------------------

HISTORY_BYTES = 1024 * MIB
"""Of values that were written over or deleted, whatever their age, unless ``--history-size`` says
otherwise; older ones are forgotten early."""

HISTORY_WRITES = 500_000
"""Of such values: each takes about 200 bytes of memory."""

HISTORY_AT_ONCE = 200
"""Revisions of one object in one answer."""

HISTORY_READ_AT_ONCE = 16 * MIB
"""Of values in one such answer: larger objects are told in more answers."""

HISTORY_CHANGES = 100
"""Paths that are named for one revision."""
