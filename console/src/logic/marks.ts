/** How a cell differs from the column that others are compared with. */
import type { Row } from "./align";

export type Mark = "same" | "changed" | "added" | "removed" | "missing" | "absent";

/**
 * Against a line of the reference a cell is the same, changed or missing; where the reference has none, added or
 * absent as well. A line of the reference that nobody else has is removed.
 */
export function mark(row: Row, column: number, reference: number): Mark {
  const cell = row.cells[column] ?? null;
  const other = row.cells[reference] ?? null;
  if (row.same) return "same";
  if (column === reference) return cell === null ? "absent" : ownMark(row, cell, reference);
  if (cell === null) return other === null ? "absent" : "missing";
  if (other === null) return "added";
  return other === cell ? "same" : "changed";
}

function ownMark(row: Row, cell: string, reference: number): Mark {
  const others = row.cells.filter((_, column) => column !== reference);
  if (others.every((other) => other === null)) return "removed";
  return others.some((other) => other !== null && other !== cell) ? "changed" : "same";
}

export const SIGNS: Record<Mark, string> = { same: " ", changed: "~", added: "+", removed: "−", missing: "−", absent: " " };

/** Rows that differ, with a few around each; a `null` stands for what was left out. */
export function onlyChanges(rows: Row[], around = 3): (Row | null)[] {
  const shown: (Row | null)[] = [];
  let last = -1;
  const keep = new Uint8Array(rows.length);
  rows.forEach((row, index) => {
    if (!row.same) keep.fill(1, Math.max(0, index - around), Math.min(rows.length, index + around + 1));
  });
  for (const [index, row] of rows.entries()) {
    if (!keep[index]) continue;
    if (index !== last + 1) shown.push(null);
    shown.push(row);
    last = index;
  }
  if (shown.length > 0 && last !== rows.length - 1) shown.push(null);
  return shown;
}

export function differences(rows: Row[]): number {
  return rows.reduce((count, row) => count + (row.same ? 0 : 1), 0);
}
