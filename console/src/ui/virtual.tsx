/** A list of any length: only the rows in sight are on the page. All rows are equally high. */
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** The size of a letter, which follows the width of the screen. */
export function useRem(): number {
  const [rem, setRem] = useState(remNow);
  useEffect(() => {
    const measure = () => setRem(remNow());
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, []);
  return rem;
}

function remNow(): number {
  return parseFloat(getComputedStyle(document.documentElement).fontSize) || 16;
}

const BEYOND = 8;

export interface Sight {
  first: number;
  last: number;
}

export function useSight(box: RefObject<HTMLElement | null>, rowHeight: number, rows: number): Sight {
  const there = rows > 0;
  const [sight, setSight] = useState<Sight>({ first: 0, last: 60 });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => {
      const first = Math.max(0, Math.floor(element.scrollTop / rowHeight) - BEYOND);
      const last = Math.ceil((element.scrollTop + element.clientHeight) / rowHeight) + BEYOND;
      setSight((before) => (before.first === first && before.last === last ? before : { first, last }));
    };
    measure();
    element.addEventListener("scroll", measure, { passive: true });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => {
      element.removeEventListener("scroll", measure);
      observer.disconnect();
    };
    // A box that was empty is not on the page: when rows come, it is another element.
  }, [box, rowHeight, there]);
  return { first: Math.min(sight.first, Math.max(0, rows - 1)), last: Math.min(sight.last, rows) };
}

/** Rows of text, virtual; the box scrolls both ways and takes the keyboard. */
export function VirtualLines(props: {
  label: string;
  count: number;
  rowRem?: number;
  head?: ComponentChildren;
  class?: string;
  render: (index: number) => ComponentChildren;
}) {
  const box = useRef<HTMLDivElement>(null);
  const height = Math.round((props.rowRem ?? 1.4) * useRem());
  const { first, last } = useSight(box, height, props.count);
  const rows: ComponentChildren[] = [];
  for (let index = first; index < last; index++) rows.push(props.render(index));
  return (
    <div class={`lines ${props.class ?? ""}`} ref={box} tabIndex={0} role="region" aria-label={props.label}>
      {props.head}
      <div class="sheet" style={{ height: `${props.count * height}px`, "--row": `${height}px` }}>
        <div class="window" style={{ transform: `translateY(${first * height}px)` }}>
          {rows}
        </div>
      </div>
    </div>
  );
}
