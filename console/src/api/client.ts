/**
 * Requests to the server this page came from, with the session it set.
 *
 * A request that finds the session over waits until somebody has signed in again and is then
 * repeated, so that a page keeps what it shows.
 */
import { signedInAgain } from "./session";
import { Problem, isAbort, problemFrom, problemOf } from "./problem";

export interface Ask {
  method?: string;
  body?: unknown;
  /** A body that is no JSON: its text and what it is. */
  text?: { type: string; content: string };
  accept?: string;
  signal?: AbortSignal;
}

/** No page of another site can set this header, and the server demands it for every change. */
const SAME_SITE = { "X-Instar-Console": "1" };

export async function send(path: string, ask: Ask = {}): Promise<Response> {
  for (;;) {
    const response = await once(path, ask);
    if (response.ok) return response;
    const body = await response.text().catch(() => "");
    if (response.status === 429) await pause(Number(response.headers.get("Retry-After")) || 1, ask.signal);
    else if (response.status === 401) await signedInAgain(ask.signal);
    else throw problemOf(response.status, body);
  }
}

async function once(path: string, ask: Ask): Promise<Response> {
  const headers: Record<string, string> = { Accept: ask.accept ?? "application/json", ...SAME_SITE };
  const init: RequestInit = { method: ask.method ?? "GET", headers, credentials: "same-origin" };
  if (ask.text !== undefined) {
    headers["Content-Type"] = ask.text.type;
    init.body = ask.text.content;
  } else if (ask.body !== undefined) {
    headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(ask.body);
  }
  if (ask.signal) init.signal = ask.signal;
  try {
    return await fetch(path, init);
  } catch (error) {
    if (isAbort(error)) throw error;
    throw problemFrom(error);
  }
}

export async function json<T>(path: string, ask: Ask = {}): Promise<T> {
  const response = await send(path, ask);
  const text = await response.text();
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new Problem(response.status, "", `${path} answered something that is not JSON`);
  }
}

/** As `json`, and undefined where the server has no such thing. */
export async function jsonIfThere<T>(path: string, ask: Ask = {}): Promise<T | undefined> {
  try {
    return await json<T>(path, ask);
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return undefined;
    throw error;
  }
}

function pause(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    setTimeout(resolve, seconds * 1_000);
    signal?.addEventListener("abort", () => reject(new DOMException("the page was left", "AbortError")));
  });
}
