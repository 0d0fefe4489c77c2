import { describe, expect, it } from "vitest";
import { FrameBatch } from "../src/api/frames";
import { Problem } from "../src/api/problem";
import { type Watching, type WatchState, follow } from "../src/api/watch";
import { LineSplitter } from "../src/logic/lines";

const event = (type: string, revision: string, extra: object = {}) => JSON.stringify({ type, object: { metadata: { name: "a", resourceVersion: revision }, ...extra } }) + "\n";
const stream = (...pieces: string[]) => new Response(new ReadableStream({
  start(controller) {
    for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
    controller.close();
  },
}));

/** Runs a watch over answers given in order and notes what it asked for. */
async function watched(answers: (Response | Error)[]) {
  const abort = new AbortController();
  const asked: string[] = [];
  const seen: string[] = [];
  const states: WatchState[] = [];
  const watching: Watching = {
    list: () => {
      asked.push("list");
      return Promise.resolve("10");
    },
    open: (revision) => {
      asked.push(revision);
      const answer = answers.shift();
      if (answer === undefined) {
        abort.abort();
        return Promise.reject(new DOMException("left", "AbortError"));
      }
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
    },
    events: (events) => seen.push(...events.map((one) => `${one.type} ${(one.object.metadata as { resourceVersion: string }).resourceVersion}`)),
    state: (state) => states.push(state),
    pause: () => 0,
  };
  await follow(watching, abort.signal);
  return { asked, seen, states };
}

describe("a watch", () => {
  it("goes on from the last revision when the stream ends", async () => {
    const { asked, seen } = await watched([stream(event("ADDED", "11"), event("MODIFIED", "12")), stream(event("DELETED", "13"))]);
    expect(asked).toEqual(["list", "10", "12", "13"]);
    expect(seen).toEqual(["ADDED 11", "MODIFIED 12", "DELETED 13"]);
  });

  it("remembers a bookmark and does not show it", async () => {
    const { asked, seen } = await watched([stream(event("BOOKMARK", "50"))]);
    expect(asked).toEqual(["list", "10", "50"]);
    expect(seen).toEqual([]);
  });

  it("lists again when its revision is forgotten", async () => {
    const gone = JSON.stringify({ type: "ERROR", object: { code: 410, reason: "Expired", message: "too old" } }) + "\n";
    expect((await watched([stream(gone)])).asked).toEqual(["list", "10", "list", "10"]);
    expect((await watched([new Problem(410, "Gone", "too old")])).asked).toEqual(["list", "10", "list", "10"]);
  });

  it("says that it waits when the server is away, and comes back", async () => {
    const { states, asked } = await watched([new TypeError("network"), stream(event("ADDED", "11"))]);
    expect(states).toEqual(["connecting", "waiting", "connecting", "live", "connecting"]);
    expect(asked).toEqual(["list", "10", "10", "11"]);
  });

  it("ends where nothing can be watched", async () => {
    expect((await watched([new Problem(403, "Forbidden", "no")])).asked).toEqual(["list", "10"]);
  });

  it("reads an event that comes in pieces, even within a letter", async () => {
    const bytes = new TextEncoder().encode(event("ADDED", "11", { note: "日本語" }));
    const cut = bytes.indexOf(0xe6) + 1;
    const pieces = new Response(new ReadableStream({
      start(controller) {
        controller.enqueue(bytes.slice(0, cut));
        controller.enqueue(bytes.slice(cut));
        controller.close();
      },
    }));
    expect((await watched([pieces])).seen).toEqual(["ADDED 11"]);
  });

  it("starts over after a line that is no JSON", async () => {
    const { states } = await watched([stream("<html>\n")]);
    expect(states).toContain("waiting");
  });

  it("finds the revision of a table in its row", async () => {
    const table = JSON.stringify({ type: "MODIFIED", object: { kind: "Table", metadata: {}, rows: [{ object: { metadata: { resourceVersion: "77" } } }] } }) + "\n";
    expect((await watched([stream(table)])).asked).toEqual(["list", "10", "77"]);
  });
});

describe("lines", () => {
  it("are whole, whatever the pieces", () => {
    const splitter = new LineSplitter();
    expect(splitter.push("a\nb")).toEqual(["a"]);
    expect(splitter.push("c\n\n")).toEqual(["bc"]);
  });
});

describe("a frame", () => {
  it("handles all that came since the last one, once", () => {
    const handled: number[][] = [];
    const frames: (() => void)[] = [];
    const batch = new FrameBatch<number>((items) => handled.push(items), (run) => frames.push(run));
    for (let index = 0; index < 1_000; index++) batch.add([index]);
    expect(frames.length).toBe(1);
    frames.shift()?.();
    expect(handled.map((items) => items.length)).toEqual([1_000]);
    batch.add([1]);
    expect(frames.length).toBe(1);
  });
});
