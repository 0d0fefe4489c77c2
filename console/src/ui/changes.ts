/** Tells, at most twice a second, that something of a collection has changed. */
import { useEffect, useState } from "preact/hooks";
import { json, send } from "../api/client";
import { type WatchState, follow } from "../api/watch";
import { textAt, type JsonMap } from "../logic/json";
import { withQuery } from "../logic/paths";

const PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const QUIET = 500;

/** `selector` is a field selector, for one object of the collection. */
export function useChanges(path: string, changed: () => void, selector = ""): WatchState {
  const [state, setState] = useState<WatchState>("connecting");
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const soon = () => {
      timer ??= setTimeout(() => {
        timer = undefined;
        changed();
      }, QUIET);
    };
    void follow(
      {
        list: async (signal) => {
          const list = await json<JsonMap>(withQuery(path, { limit: 1, fieldSelector: selector }), { accept: PARTIAL_LIST, signal });
          return textAt(list, "metadata", "resourceVersion");
        },
        open: (revision, signal) =>
          send(withQuery(path, { watch: 1, resourceVersion: revision, allowWatchBookmarks: "true", fieldSelector: selector }), {
            accept: PARTIAL,
            signal,
          }),
        events: (events) => {
          if (events.length > 0) soon();
        },
        state: (next) => {
          setState(next);
          if (next === "live") soon();
        },
      },
      abort.signal,
    );
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [path, changed, selector]);
  return state;
}
