/** Two columns as one, for narrow screens: the lines of the old side, then those of the new. */
import type { Row } from "./align";
import type { Mark } from "./marks";

export interface UnifiedLine {
  path: string;
  text: string;
  mark: Mark;
  /** The row of a line that stands for it: its first column, or both columns where they are equal. */
  row?: Row;
}

/** A `null` stands for rows that were left out. */
export function unified(rows: (Row | null)[]): (UnifiedLine | null)[] {
  const lines: (UnifiedLine | null)[] = [];
  let added: UnifiedLine[] = [];
  const flush = () => {
    lines.push(...added);
    added = [];
  };
  for (const row of rows) {
    if (row === null || row.same) {
      flush();
      lines.push(row && { path: row.path, text: row.cells[0] ?? "", mark: "same", row });
      continue;
    }
    const [old, now] = row.cells;
    if (typeof old === "string") lines.push({ path: row.path, text: old, mark: row.problem ? "problem" : "removed", row });
    if (typeof now === "string") added.push({ path: row.path, text: now, mark: row.problem ? "problem" : "added" });
  }
  flush();
  return lines;
}
