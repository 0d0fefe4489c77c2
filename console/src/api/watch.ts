/**
 * A watch that does not end: list, follow, and when the stream breaks go on from the last revision.
 * When the server has forgotten that revision (410), list again.
 */
import { LineSplitter } from "../logic/lines";
import { isMap, textAt, type JsonMap } from "../logic/json";
import { Problem, isAbort, problemFrom } from "./problem";

export interface WatchEvent {
  type: string;
  object: JsonMap;
}

export type WatchState = "connecting" | "live" | "waiting";

export interface Watching {
  /** Reads everything anew; answers the revision to follow from. */
  list: (signal: AbortSignal) => Promise<string>;
  /** Opens the stream after a revision. */
  open: (revision: string, signal: AbortSignal) => Promise<Response>;
  events: (events: WatchEvent[]) => void;
  state: (state: WatchState, problem?: Problem) => void;
  /** Milliseconds until the next attempt after so many failures; replaced by tests. */
  pause?: (failures: number) => number;
}

const GONE = 410;

export async function follow(watching: Watching, signal: AbortSignal): Promise<void> {
  let revision = "";
  let failures = 0;
  while (!signal.aborted) {
    try {
      watching.state("connecting");
      if (revision === "") revision = await watching.list(signal);
      const response = await watching.open(revision, signal);
      watching.state("live");
      for await (const events of eventsOf(response)) {
        failures = 0;
        const last = events.findLast((event) => event.type !== "ERROR");
        if (last) revision = revisionOf(last.object) || revision;
        const failed = events.find((event) => event.type === "ERROR");
        watching.events(events.filter((event) => event.type !== "ERROR" && event.type !== "BOOKMARK"));
        if (failed) throw problemOfEvent(failed);
      }
    } catch (error) {
      if (isAbort(error)) return;
      const problem = problemFrom(error);
      if (problem.status === GONE) {
        revision = "";
        continue;
      }
      watching.state("waiting", problem);
      if (problem.status === 403 || problem.status === 404) return;
      failures += 1;
    }
    await sleep((watching.pause ?? backoff)(failures), signal);
  }
}

/** The events of a stream, those that came together as one list. */
export async function* eventsOf(response: Response): AsyncGenerator<WatchEvent[]> {
  if (response.body === null) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const splitter = new LineSplitter();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const events = splitter.push(value).map(readEvent).filter((event) => event !== undefined);
      if (events.length > 0) yield events;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function readEvent(line: string): WatchEvent | undefined {
  const parsed: unknown = JSON.parse(line);
  if (!isMap(parsed) || !isMap(parsed.object) || typeof parsed.type !== "string") return undefined;
  return { type: parsed.type, object: parsed.object };
}

function revisionOf(object: JsonMap): string {
  return textAt(object, "metadata", "resourceVersion") || rowRevision(object);
}

/** In a watch of tables the revision may stand in the row's object alone. */
function rowRevision(table: JsonMap): string {
  const rows = table.rows;
  return Array.isArray(rows) && isMap(rows[0]) ? textAt(rows[0].object, "metadata", "resourceVersion") : "";
}

function problemOfEvent(event: WatchEvent): Problem {
  const code = event.object.code;
  return new Problem(typeof code === "number" ? code : 500, textAt(event.object, "reason"), textAt(event.object, "message"));
}

function backoff(failures: number): number {
  return Math.min(30_000, 250 * 2 ** Math.min(failures, 7)) * (0.75 + Math.random() / 2);
}

function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
