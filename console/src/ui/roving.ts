/** j and k walk over the links of a list, as arrows do in a menu. */
import type { RefObject } from "preact";
import { useCallback } from "preact/hooks";
import { useKey } from "./keys";

export function useRoving(list: RefObject<HTMLElement | null>, selector: string): void {
  const move = useCallback(
    (by: number) => {
      const links = [...(list.current?.querySelectorAll<HTMLElement>(selector) ?? [])];
      const now = links.indexOf(document.activeElement as HTMLElement);
      const next = links[Math.max(0, Math.min(links.length - 1, now + by))];
      next?.focus();
      next?.scrollIntoView({ block: "nearest" });
    },
    [list, selector],
  );
  useKey("j", useCallback(() => move(1), [move]));
  useKey("k", useCallback(() => move(-1), [move]));
}
