/**
 * Values side by side: the lines of several JSON values, those that say the same thing in one row.
 *
 * Maps are matched by key, lists by the `name` of their items, by value, or by position. The work is
 * linear in the size of the values.
 */
import { type Json, type JsonMap, isMap } from "./json";
import { LONGEST_LINE, scalarText } from "./scalars";

export interface Row {
  /** Where the value stands: `spec.tasks[0].name`. */
  path: string;
  /** A line per column; null where that column has none. */
  cells: (string | null)[];
  same: boolean;
  /** Whether the line says why a value is refused, instead of being a value. */
  problem?: boolean;
}

type Column = Json | undefined;
const DEEPEST = 200;

/** The rows of values shown beside each other; `undefined` is a column without a value. */
export function align(values: Column[]): Row[] {
  const writer = new Writer(values.length);
  if (values.some((value) => value !== undefined && isFull(value))) {
    writer.children(values, "", 0);
  } else {
    writer.row("", 0, values.map((value) => (value === undefined ? null : scalarText(value))));
  }
  return writer.rows;
}

/** The lines of one value. */
export function lines(value: Json): Row[] {
  return align([value]);
}

/** All of it as text, for copying. */
export function yamlText(value: Json): string {
  const whole = align([value]).map((row) => row.cells[0] ?? "");
  return whole.join("\n") + "\n";
}

class Writer {
  readonly rows: Row[] = [];
  /** Columns whose next line starts a list item. */
  private readonly dash: number[];

  constructor(columns: number) {
    this.dash = new Array<number>(columns).fill(0);
  }

  row(path: string, depth: number, texts: (string | null)[]): void {
    const cells = texts.map((text, column) =>
      text === null ? null : this.indent(column, depth) + text,
    );
    const first = cells[0];
    this.rows.push({ path, cells, same: cells.every((cell) => cell !== null && cell === first) });
  }

  children(values: Column[], path: string, depth: number): void {
    if (depth > DEEPEST) { this.row(path, depth, values.map((v) => (v === undefined ? null : "…"))); return; }
    const maps = values.map((value) => (isMap(value) ? value : undefined));
    for (const key of unionOfKeys(maps)) {
      const inside = maps.map((map) => (map && Object.hasOwn(map, key) ? map[key] : undefined));
      this.entry(inside, scalarText(key), path === "" ? key : `${path}.${key}`, depth);
    }
    const lists = values.map((value) => (Array.isArray(value) ? value : undefined));
    for (const item of matchedItems(lists)) {
      const at = item.findIndex((position) => position !== undefined);
      const inside = item.map((position, column) =>
        position === undefined ? undefined : lists[column]?.[position],
      );
      this.item(inside, `${path}[${item[at] ?? 0}]`, depth);
    }
    const texts = values.map((value) => (isBlock(value) ? value.split("\n") : undefined));
    const longest = texts.reduce((most, text) => Math.max(most, text?.length ?? 0), 0);
    for (let index = 0; index < longest; index++)
      this.row(path, depth, texts.map((text) => cut(text?.[index])));
  }

  private entry(values: Column[], key: string, path: string, depth: number): void {
    const full = values.map((value) => value !== undefined && isFull(value));
    this.row(
      path,
      depth,
      values.map((value, column) => {
        if (value === undefined) return null;
        if (full[column]) return isBlock(value) ? `${key}: |` : `${key}:`;
        return `${key}: ${scalarText(value)}`;
      }),
    );
    if (full.some(Boolean))
      this.children(values.map((value, column) => (full[column] ? value : undefined)), path, depth + 1);
  }

  private item(values: Column[], path: string, depth: number): void {
    for (const [column, value] of values.entries())
      if (value !== undefined) this.dash[column] = (this.dash[column] ?? 0) + 1;
    const scalars = values.map((value) =>
      value === undefined || (isFull(value) && !isBlock(value))
        ? null
        : isBlock(value) ? "|" : scalarText(value),
    );
    if (scalars.some((text) => text !== null)) this.row(path, depth + 1, scalars);
    const full = values.map((value) => (value !== undefined && isFull(value) ? value : undefined));
    if (full.some((value) => value !== undefined)) this.children(full, path, depth + 1);
  }

  private indent(column: number, depth: number): string {
    const dashes = Math.min(this.dash[column] ?? 0, depth);
    this.dash[column] = 0;
    return "  ".repeat(depth - dashes) + "- ".repeat(dashes);
  }
}

function isBlock(value: Column): value is string {
  return typeof value === "string" && value.includes("\n");
}

/** Whether a value needs lines of its own. */
function isFull(value: Json): boolean {
  if (Array.isArray(value)) return value.length > 0;
  if (isMap(value)) return Object.keys(value).length > 0;
  return isBlock(value);
}

function cut(line: string | undefined): string | null {
  if (line === undefined) return null;
  return line.length > LONGEST_LINE ? line.slice(0, LONGEST_LINE) + "…" : line;
}

function unionOfKeys(maps: (JsonMap | undefined)[]): Iterable<string> {
  const keys = new Set<string>();
  for (const map of maps) if (map) for (const key of Object.keys(map)) keys.add(key);
  return keys;
}

/** For each item the position it has in every column. */
function matchedItems(lists: (Json[] | undefined)[]): (number | undefined)[][] {
  const matched = new Map<string, (number | undefined)[]>();
  const named = lists.every((list) => list === undefined || identified(list));
  for (const [column, list] of lists.entries()) {
    for (const [position, item] of (list ?? []).entries()) {
      const key = named ? identity(item) : String(position);
      let places = matched.get(key);
      if (!places) matched.set(key, (places = new Array<number | undefined>(lists.length).fill(undefined)));
      places[column] = position;
    }
  }
  return [...matched.values()];
}

function identity(item: Json): string {
  if (isMap(item)) return typeof item.name === "string" ? `name ${item.name}` : "";
  return Array.isArray(item) ? "" : `value ${JSON.stringify(item)}`;
}

function identified(list: Json[]): boolean {
  const seen = new Set<string>();
  for (const item of list) {
    const key = identity(item);
    if (key === "" || seen.has(key)) return false;
    seen.add(key);
  }
  return true;
}
