/**
 * The objects of a collection as rows: read page by page as they come into sight, kept current by a
 * watch, and put on the screen once per frame.
 */
import { signal } from "@preact/signals";
import { json, send } from "../../api/client";
import { FrameBatch } from "../../api/frames";
import { Problem, isAbort, problemFrom } from "../../api/problem";
import { type WatchEvent, type WatchState, follow } from "../../api/watch";
import { at, textAt, type JsonMap } from "../../logic/json";
import { withQuery } from "../../logic/paths";
import { type Change, Rows, type TableColumn, columnsOf, rowsOf } from "../../logic/rows";

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
/** The first page is there at once; those behind it are larger, and read without a frame being lost. */
const PAGE = 500;
const NEXT_PAGE = 2_000;
const GONE = 410;

export interface Selection {
  path: string;
  labels: string;
  fields: string;
}

export class Feed {
  rows = new Rows();
  columns: TableColumn[] = [];
  /** Raised with every change on the screen. */
  readonly tick = signal(0);
  readonly state = signal<WatchState>("connecting");
  readonly problem = signal<Problem | undefined>(undefined);
  private remaining = 0;
  private next = "";
  private wanted = 0;
  private reading = false;
  private clock = 0;
  private revision = "";
  private readonly batch = new FrameBatch<WatchEvent>((events) => this.take(events));

  constructor(private readonly selection: Selection) {}

  /** How many there are, as far as the server has said. */
  get total(): number {
    return this.rows.size + (this.rows.whole ? 0 : this.remaining);
  }

  start(abort: AbortSignal): void {
    void follow(
      {
        list: (signal) => this.list(signal),
        open: (revision, signal) => send(this.address({ watch: 1, resourceVersion: revision, allowWatchBookmarks: "true" }), { accept: TABLE, signal }),
        events: (events) => this.batch.add(events),
        state: (state, problem) => {
          this.state.value = state;
          if (problem || state === "live") this.problem.value = problem;
        },
      },
      abort,
    );
  }

  /** Read on until this row is there. */
  want(index: number, abort: AbortSignal): void {
    this.wanted = Math.max(this.wanted, index);
    void this.readOn(abort);
  }

  private address(query: Record<string, string | number | undefined>): string {
    const { path, labels, fields } = this.selection;
    return withQuery(path, { ...query, labelSelector: labels, fieldSelector: fields });
  }

  private async list(abort: AbortSignal): Promise<string> {
    const table = await json<JsonMap>(this.address({ limit: PAGE }), { accept: TABLE, signal: abort });
    this.rows = new Rows();
    this.columns = columnsOf(table);
    this.revision = textAt(table, "metadata", "resourceVersion");
    this.add(table);
    void this.readOn(abort);
    return this.revision;
  }

  private add(table: JsonMap): void {
    this.next = textAt(table, "metadata", "continue");
    const remaining = at(table, "metadata", "remainingItemCount");
    this.remaining = typeof remaining === "number" ? remaining : this.next === "" ? 0 : PAGE;
    this.rows.page(rowsOf(table), this.next === "");
    this.tick.value += 1;
  }

  private async readOn(abort: AbortSignal): Promise<void> {
    if (this.reading) return;
    this.reading = true;
    try {
      while (this.next !== "" && this.rows.size <= this.wanted && !abort.aborted) {
        const revision = this.revision;
        const table = await json<JsonMap>(this.address({ limit: NEXT_PAGE, continue: this.next }), { accept: TABLE, signal: abort });
        if (revision === this.revision) this.add(table);
      }
    } catch (error) {
      if (isAbort(error)) return;
      const problem = problemFrom(error);
      // The server keeps old revisions for minutes: who scrolls on after a long pause starts over.
      if (problem.status === GONE) await this.list(abort).catch(() => undefined);
      else this.problem.value = problem;
    } finally {
      this.reading = false;
    }
  }

  private take(events: WatchEvent[]): void {
    this.clock += 1;
    const changes: Change[] = [];
    for (const event of events)
      for (const row of rowsOf(event.object)) {
        row.changed = this.clock;
        changes.push(event.type === "DELETED" ? { type: "drop", key: row.key } : { type: "put", row });
      }
    this.rows.apply(changes);
    this.tick.value += 1;
  }
}
