/** Who is signed in. The credential itself lives in a cookie no script can read. */
import { signal } from "@preact/signals";
import { Problem, problemFrom, problemOf } from "./problem";

export interface Session {
  authenticated: boolean;
  user: { username: string; groups: string[] } | null;
  how: "token" | "oidc" | "certificate" | "kubeconfig" | null;
  expires: string | null;
  why?: string;
  mode: "serve" | "cluster";
  server: { url: string; version: string; instar: boolean; context: string | null; readOnly?: boolean };
  login: { token: boolean; certificate: boolean; oidc: { issuer: string; start: string } | null; link: boolean };
}

export const session = signal<Session | undefined>(undefined);
/** True while somebody must sign in: the dialog stands over the page, which keeps what it shows. */
export const signInNeeded = signal(false);

const PATH = "/console/session";
const HEADERS = { Accept: "application/json", "X-Instar-Console": "1" };
let waiting: (() => void)[] = [];

/** Resolves as soon as somebody has signed in. */
export function signedInAgain(abort?: AbortSignal): Promise<void> {
  signInNeeded.value = true;
  return new Promise((resolve, reject) => {
    waiting.push(resolve);
    abort?.addEventListener("abort", () => reject(new DOMException("the page was left", "AbortError")));
  });
}

async function exchange(init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(PATH, { credentials: "same-origin", ...init });
  } catch (error) {
    throw problemFrom(error);
  }
  if (!response.ok) throw problemOf(response.status, await response.text());
  return response;
}

async function take(response: Response): Promise<void> {
  session.value = (await response.json()) as Session;
  signInNeeded.value = !session.value.authenticated;
  if (signInNeeded.value) return;
  const ready = waiting;
  waiting = [];
  for (const go of ready) go();
}

export async function readSession(): Promise<void> {
  await take(await exchange({ headers: HEADERS }));
}

async function post(body: unknown): Promise<void> {
  const headers = { ...HEADERS, "Content-Type": "application/json" };
  await take(await exchange({ method: "POST", headers, body: JSON.stringify(body) }));
}

export async function signIn(token: string): Promise<void> {
  try {
    await post({ token });
  } catch (error) {
    if (error instanceof Problem && error.status === 401)
      throw new Problem(401, "Unauthorized", "The server does not know this token, or it has expired.");
    throw error;
  }
}

/** `instar console` prints an address with a secret that works once. It leaves the address at once. */
export async function signInByLink(): Promise<void> {
  const secret = new URLSearchParams(location.hash.slice(1)).get("link");
  if (secret === null) return;
  history.replaceState(null, "", location.pathname + location.search);
  await post({ link: secret });
}

export async function signOut(): Promise<void> {
  await exchange({ method: "DELETE", headers: HEADERS });
  // Everything that was read with these rights leaves the page's memory with it.
  location.assign("/console/");
}
