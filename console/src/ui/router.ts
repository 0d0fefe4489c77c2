/** The address is the state of a page: everything that can be chosen stands in it. */
import { batch, signal } from "@preact/signals";
import { pageParts, withQuery } from "../logic/paths";

export interface Route {
  /** Undefined where the path is none of the console's. */
  parts: string[] | undefined;
  query: URLSearchParams;
  fragment: string;
  path: string;
}

export const route = signal<Route>(read());

function read(): Route {
  return {
    parts: pageParts(location.pathname),
    query: new URLSearchParams(location.search),
    fragment: location.hash.slice(1),
    path: location.pathname,
  };
}

function refresh(): void {
  batch(() => (route.value = read()));
}

export function navigate(path: string): void {
  history.pushState(null, "", path);
  refresh();
  scrollTo(0, 0);
}

/** Choose something on this page; by default a step back undoes it. */
export function choose(query: Record<string, string | undefined>, replace = false): void {
  const all: Record<string, string | undefined> = Object.fromEntries(route.value.query);
  const path = withQuery(location.pathname, { ...all, ...query });
  if (replace) history.replaceState(null, "", path);
  else history.pushState(null, "", path);
  refresh();
}

export function setFragment(fragment: string): void {
  history.replaceState(null, "", `${location.pathname}${location.search}#${fragment}`);
  refresh();
}

/** Links are plain links; a click on one of ours stays on the page. */
export function startRouter(): void {
  addEventListener("popstate", refresh);
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest("a");
    if (link?.target !== "" || link.hasAttribute("download")) return;
    if (link.origin !== location.origin || pageParts(link.pathname) === undefined) return;
    if (link.hash !== "" && link.pathname === location.pathname && link.search === location.search) return;
    event.preventDefault();
    navigate(link.pathname + link.search + link.hash);
  });
}
