/** Shortcuts of the whole console. A page adds its own with `useKey`. */
import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";
import { pagePath } from "../logic/paths";
import { navigate } from "./router";
import { nextTheme } from "./theme";

export const helpShown = signal(false);

export const SHORTCUTS: [string, string][] = [
  ["/", "search or filter this page"],
  ["g h", "home: all CRDs"],
  ["g r", "review a change"],
  ["g c", "convert an object"],
  ["g m", "migrations"],
  ["g w", "webhooks"],
  ["j, k", "next, previous row"],
  ["Enter", "open the row"],
  ["d", "only differences, or all lines"],
  ["o", "owners of fields"],
  ["t", "light, dark, or as the system"],
  ["?", "this help"],
  ["Esc", "close, or leave the field"],
];

const GOES: Record<string, string[]> = { h: [], r: ["review"], c: ["convert"], m: ["migrations"], w: ["webhooks"] };
const handlers = new Map<string, () => void>();
let afterG = 0;

export function useKey(key: string, handler: () => void): void {
  useEffect(() => {
    handlers.set(key, handler);
    return () => {
      if (handlers.get(key) === handler) handlers.delete(key);
    };
  }, [key, handler]);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function focusSearch(): boolean {
  const field = document.querySelector<HTMLElement>("main [data-search]");
  field?.focus();
  return field !== null;
}

export function startKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape") (event.target as HTMLElement).blur();
      return;
    }
    if (document.querySelector("dialog[open]")) return;
    if (pressed(event.key, event.timeStamp)) event.preventDefault();
  });
}

function pressed(key: string, time: number): boolean {
  const goes = GOES[key];
  if (time - afterG < 1_000 && goes) {
    afterG = 0;
    navigate(pagePath(...goes) + (goes.length === 0 ? "/" : ""));
    return true;
  }
  if (key === "g") {
    afterG = time;
    return true;
  }
  if (key === "/") return focusSearch();
  if (key === "?") return (helpShown.value = true);
  if (key === "t") {
    nextTheme();
    return true;
  }
  const handler = handlers.get(key);
  handler?.();
  return handler !== undefined;
}
