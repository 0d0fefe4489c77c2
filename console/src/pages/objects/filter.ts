/** Rows that hold a text. All pages are read for it; the answer is made anew a few times a second. */
import { useEffect, useState } from "preact/hooks";
import type { TableRow } from "../../logic/rows";
import type { Feed } from "./feed";

const EVERY = 300;

export function useFiltered(feed: Feed, text: string, abort: AbortSignal): TableRow[] | undefined {
  const wanted = text.trim().toLowerCase();
  const [found, setFound] = useState<TableRow[]>([]);
  useEffect(() => {
    if (wanted === "") return;
    feed.want(Number.MAX_SAFE_INTEGER, abort);
    let seen = -1;
    const look = () => {
      if (feed.tick.peek() === seen) return;
      seen = feed.tick.peek();
      setFound(matching(feed, wanted));
    };
    look();
    const timer = setInterval(look, EVERY);
    return () => clearInterval(timer);
  }, [feed, wanted, abort]);
  return wanted === "" ? undefined : found;
}

function matching(feed: Feed, wanted: string): TableRow[] {
  const found: TableRow[] = [];
  for (let index = 0; index < feed.rows.size; index++) {
    const row = feed.rows.at(index);
    if (row && holds(row, wanted)) found.push(row);
  }
  return found;
}

function holds(row: TableRow, wanted: string): boolean {
  if (row.key.toLowerCase().includes(wanted)) return true;
  return row.cells.some((cell) => (typeof cell === "string" ? cell : JSON.stringify(cell)).toLowerCase().includes(wanted));
}
