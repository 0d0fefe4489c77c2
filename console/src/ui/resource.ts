/** Something a page reads: on its way, there, or failed. What was there stays while it is read anew. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type Problem, isAbort, problemFrom } from "../api/problem";

export interface Read<T> {
  value?: T;
  problem?: Problem;
  loading: boolean;
  reload: () => void;
}

/** `key` says what is read: another one starts over. An empty key reads nothing. */
export function useRead<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Read<T> {
  const [state, setState] = useState<{ key: string; value?: T; problem?: Problem; loading: boolean }>({
    key,
    loading: true,
  });
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    if (key === "") return;
    const abort = new AbortController();
    setState((before) => (before.key === key ? { ...before, loading: true } : { key, loading: true }));
    latest.current(abort.signal).then(
      (value) => {
        if (!abort.signal.aborted) setState({ key, value, loading: false });
      },
      (error: unknown) => {
        if (isAbort(error) || abort.signal.aborted) return;
        setState((before) => ({ ...before, key, problem: problemFrom(error), loading: false }));
      },
    );
    return () => abort.abort();
  }, [key, turn]);
  const reload = useCallback(() => setTurn((before) => before + 1), []);
  const current = state.key === key ? state : { loading: key !== "" };
  return { ...current, reload };
}

/** Reads again every so often, while the page is looked at. */
export function useEvery(seconds: number, run: () => void): void {
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) run();
    }, seconds * 1_000);
    return () => clearInterval(timer);
  }, [seconds, run]);
}
