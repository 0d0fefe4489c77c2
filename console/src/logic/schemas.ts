/**
 * Schemas of two (or more) versions side by side: a row per field, with what it demands in a line.
 *
 * Reads any document: what is no schema is shown as it is, and nothing recurses deeper than DEEPEST.
 */
import type { Row } from "./align";
import { type Json, type JsonMap, isMap, listAt } from "./json";
import { scalarText } from "./scalars";

const DEEPEST = 100;
type Node = Json | undefined;

export function alignSchemas(schemas: Node[]): Row[] {
  const rows: Row[] = [];
  walk(rows, schemas, schemas.map(() => false), "", "", 0);
  return rows;
}

function walk(rows: Row[], nodes: Node[], required: boolean[], name: string, path: string, depth: number): void {
  if (path !== "") push(rows, path, depth - 1, nodes.map((node, column) =>
    node === undefined ? null : `${name}: ${demands(node, required[column] ?? false)}`));
  if (depth > DEEPEST) return;
  for (const rule of union(nodes.map((node) => listAt(node, "x-kubernetes-validations").map(ruleText))))
    push(rows, path, depth, nodes.map((node) =>
      listAt(node, "x-kubernetes-validations").some((one) => ruleText(one) === rule) ? `rule ${rule}` : null));
  const fields = nodes.map((node) => inner(node, "properties"));
  for (const key of union(fields.map((map) => Object.keys(map)))) {
    const inside = fields.map((map) => (Object.hasOwn(map, key) ? map[key] : undefined));
    const needed = nodes.map((node) => listAt(node, "required").includes(key));
    walk(rows, inside, needed, key, path === "" ? key : `${path}.${key}`, depth + 1);
  }
  descend(rows, nodes, "items", "[]", path, depth);
  descend(rows, nodes, "additionalProperties", "*", path, depth);
}

function descend(rows: Row[], nodes: Node[], key: string, name: string, path: string, depth: number): void {
  const inside = nodes.map((node) => (isMap(node) && isMap(node[key]) ? node[key] : undefined));
  if (inside.every((node) => node === undefined)) return;
  walk(rows, inside, inside.map(() => false), name, key === "items" ? `${path}[]` : `${path}.*`, depth + 1);
}

function push(rows: Row[], path: string, depth: number, texts: (string | null)[]): void {
  const cells = texts.map((text) => (text === null ? null : "  ".repeat(Math.max(0, depth)) + text));
  rows.push({ path, cells, same: cells.every((cell) => cell !== null && cell === cells[0]) });
}

function inner(node: Node, key: string): JsonMap {
  return isMap(node) && isMap(node[key]) ? node[key] : {};
}

function union(lists: string[][]): Set<string> {
  return new Set(lists.flat());
}

function ruleText(rule: Json): string {
  return isMap(rule) && typeof rule.rule === "string" ? rule.rule : JSON.stringify(rule);
}

const BOUNDS: [string, (value: Json) => string][] = [
  ["format", (value) => scalarText(value)],
  ["minimum", (value) => `≥ ${scalarText(value)}`],
  ["maximum", (value) => `≤ ${scalarText(value)}`],
  ["exclusiveMinimum", (value) => (value === true ? "minimum excluded" : "")],
  ["exclusiveMaximum", (value) => (value === true ? "maximum excluded" : "")],
  ["multipleOf", (value) => `multiple of ${scalarText(value)}`],
  ["minLength", (value) => `at least ${scalarText(value)} characters`],
  ["maxLength", (value) => `at most ${scalarText(value)} characters`],
  ["minItems", (value) => `at least ${scalarText(value)} items`],
  ["maxItems", (value) => `at most ${scalarText(value)} items`],
  ["uniqueItems", (value) => (value === true ? "unique items" : "")],
  ["minProperties", (value) => `at least ${scalarText(value)} keys`],
  ["maxProperties", (value) => `at most ${scalarText(value)} keys`],
  ["pattern", (value) => `matches ${typeof value === "string" ? value : scalarText(value)}`],
  ["enum", (value) => (Array.isArray(value) ? `one of ${value.map((one) => JSON.stringify(one)).join(" ")}` : "")],
  ["default", (value) => `default ${JSON.stringify(value)}`],
  ["nullable", (value) => (value === true ? "nullable" : "")],
  ["x-kubernetes-list-type", (value) => `list ${scalarText(value)}`],
  ["x-kubernetes-list-map-keys", (value) => (Array.isArray(value) ? `by ${value.map(scalarText).join(", ")}` : "")],
  ["x-kubernetes-map-type", (value) => `map ${scalarText(value)}`],
  ["x-kubernetes-preserve-unknown-fields", (value) => (value === true ? "unknown fields are kept" : "")],
  ["x-kubernetes-int-or-string", (value) => (value === true ? "integer or string" : "")],
  ["x-kubernetes-embedded-resource", (value) => (value === true ? "an object of its own" : "")],
  ["anyOf", () => "any of several"],
  ["oneOf", () => "one of several"],
  ["allOf", () => "all of several"],
  ["not", () => "not what it says"],
];
const LONGEST = 300;

function demands(node: Json, required: boolean): string {
  if (!isMap(node)) return `not a schema: ${JSON.stringify(node).slice(0, LONGEST)}`;
  const type = typeof node.type === "string" ? node.type : "anything";
  const said = [required ? `${type}, required` : type];
  for (const [key, say] of BOUNDS) {
    const value = node[key];
    const text = value === undefined ? "" : say(value);
    if (text !== "") said.push(text);
  }
  const text = said.join(", ");
  return text.length > LONGEST ? text.slice(0, LONGEST) + "…" : text;
}
