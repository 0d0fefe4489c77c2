/** How a cell differs from the column that others are compared with. */
import type { Row } from "./align";

export type Mark = "same" | "added" | "removed" | "absent" | "problem";

/**
 * The reference is the old side: a line of it that another column lacks or has otherwise is removed. In another column
 * a line that the reference lacks or has otherwise is added. Where a column has no line, there is nothing to mark.
 */
export function mark(row: Row, column: number, reference: number): Mark {
  const cell = row.cells[column] ?? null;
  if (cell === null) return "absent";
  if (row.same) return "same";
  if (row.problem) return "problem";
  if (column !== reference) return row.cells[reference] === cell ? "same" : "added";
  return row.cells.every((other) => other === cell) ? "same" : "removed";
}

export const SIGNS: Record<Mark, string> = { same: " ", added: "+", removed: "−", absent: " ", problem: "✕" };

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
