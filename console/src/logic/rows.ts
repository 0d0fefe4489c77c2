/**
 * The rows of a table that is read in pages and changes meanwhile.
 *
 * Rows come in the order of their keys (namespace, then name), as the API lists them. What a watch
 * says of rows whose page has not come yet waits in `early` and is put over the page when it comes.
 */
import { type Json, isMap, listAt, textAt } from "./json";

export interface TableColumn {
  name: string;
  type: string;
  format: string;
  description: string;
  priority: number;
}

export interface TableRow {
  key: string;
  namespace: string;
  name: string;
  created: string;
  deleting: boolean;
  cells: Json[];
  /** Raised with each change, so that a screen can show what is fresh. */
  changed: number;
}

export type Change = { type: "put"; row: TableRow } | { type: "drop"; key: string };

/** As the keys of a store, whose order the API lists by: `a-b/x` stands before `a/x`. */
export function rowKey(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}

export function columnsOf(table: unknown): TableColumn[] {
  return listAt(table, "columnDefinitions").map((column) => ({
    name: textAt(column, "name"),
    type: textAt(column, "type"),
    format: textAt(column, "format"),
    description: textAt(column, "description"),
    priority: isMap(column) && typeof column.priority === "number" ? column.priority : 0,
  }));
}

export function rowsOf(table: unknown): TableRow[] {
  return listAt(table, "rows").map((row) => {
    const object = isMap(row) ? row.object : undefined;
    const namespace = textAt(object, "metadata", "namespace");
    const cells = listAt(row, "cells");
    const name = textAt(object, "metadata", "name") || firstText(cells);
    return {
      key: rowKey(namespace, name),
      namespace,
      name,
      created: textAt(object, "metadata", "creationTimestamp"),
      deleting: textAt(object, "metadata", "deletionTimestamp") !== "",
      cells,
      changed: 0,
    };
  });
}

function firstText(cells: Json[]): string {
  return typeof cells[0] === "string" ? cells[0] : "";
}

export class Rows {
  private order: string[] = [];
  private known = new Map<string, TableRow>();
  private early = new Map<string, TableRow | null>();
  private complete = false;
  private last = "";

  get size(): number {
    return this.order.length;
  }

  get whole(): boolean {
    return this.complete;
  }

  at(index: number): TableRow | undefined {
    const key = this.order[index];
    return key === undefined ? undefined : this.known.get(key);
  }

  page(rows: TableRow[], complete: boolean): void {
    for (const row of rows) {
      if (this.known.has(row.key)) continue;
      this.known.set(row.key, row);
      this.order.push(row.key);
    }
    this.last = rows.at(-1)?.key ?? this.last;
    this.complete = complete;
    const ready: Change[] = [];
    for (const [key, row] of this.early) {
      if (!complete && key > this.last) continue;
      this.early.delete(key);
      ready.push(row === null ? { type: "drop", key } : { type: "put", row });
    }
    this.apply(ready);
  }

  /** All changes of a frame at once: the order is mended once, however many they are. */
  apply(changes: Change[]): void {
    const added = new Set<string>();
    const dropped = new Set<string>();
    for (const change of changes) {
      const key = change.type === "put" ? change.row.key : change.key;
      if (!this.complete && key > this.last && !this.known.has(key)) {
        this.early.set(key, change.type === "put" ? change.row : null);
      } else if (change.type === "put") {
        if (!this.known.has(key)) added.add(key);
        this.known.set(key, change.row);
      } else if (this.known.delete(key)) {
        dropped.add(key);
      }
    }
    this.mend(added, dropped);
  }

  /** A few are put in their places one by one, many in one pass over all. */
  private mend(added: Set<string>, dropped: Set<string>): void {
    if (added.size + dropped.size > FEW) {
      const kept = dropped.size === 0 ? this.order : this.order.filter((key) => !dropped.has(key));
      this.order = merged(kept, [...added].filter((key) => this.known.has(key)));
      return;
    }
    for (const key of dropped) {
      const place = placeOf(this.order, key);
      if (this.order[place] === key) this.order.splice(place, 1);
    }
    for (const key of added) {
      const place = placeOf(this.order, key);
      if (this.known.has(key) && this.order[place] !== key) this.order.splice(place, 0, key);
    }
  }
}

const FEW = 64;

/** Where a key stands in an order, or would. */
function placeOf(order: string[], key: string): number {
  let [low, high] = [0, order.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((order[middle] ?? "") < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Two orders as one; `added` is sorted first. Keys of both are kept once. */
function merged(order: string[], added: string[]): string[] {
  added.sort((left, right) => (left < right ? -1 : 1));
  const result: string[] = [];
  let next = 0;
  for (const key of order) {
    for (let one = added[next]; one !== undefined && one <= key; one = added[++next])
      if (one !== key) result.push(one);
    result.push(key);
  }
  for (const key of added.slice(next)) result.push(key);
  return result;
}
