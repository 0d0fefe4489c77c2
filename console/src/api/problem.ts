/** The one form of failure the pages know: what happened, in words for people. */
import { isMap, listAt, textAt } from "../logic/json";

export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly reason: string,
    message: string,
    readonly causes: string[] = [],
  ) {
    super(message);
  }
}

/** A Status of the API; whatever else came is said as it came, cut short. */
export function problemOf(status: number, body: string): Problem {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    parsed = undefined;
  }
  if (!isMap(parsed)) return new Problem(status, "", body.trim().slice(0, 500) || `the server answered ${status}`);
  const causes = listAt(parsed, "details", "causes").map((cause) =>
    [textAt(cause, "field"), textAt(cause, "message")].filter((part) => part !== "").join(": "),
  );
  return new Problem(status, textAt(parsed, "reason"), textAt(parsed, "message") || `the server answered ${status}`, causes);
}

export function problemFrom(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const text = error instanceof Error ? error.message : String(error);
  return new Problem(0, "Unreachable", `the server cannot be reached (${text})`);
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}
