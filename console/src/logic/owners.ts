/** Who owns which field of an object, by its managedFields. */
import { type Json, isMap, listAt, textAt } from "./json";

export interface Owner {
  manager: string;
  operation: string;
  apiVersion: string;
  subresource: string;
  time: string;
}

/** Owners by the path of a field, written as `align` writes paths. */
export function ownersOf(object: Json): Map<string, Owner[]> {
  const owners = new Map<string, Owner[]>();
  for (const entry of listAt(object, "metadata", "managedFields")) {
    const owner: Owner = {
      manager: textAt(entry, "manager"),
      operation: textAt(entry, "operation"),
      apiVersion: textAt(entry, "apiVersion"),
      subresource: textAt(entry, "subresource"),
      time: textAt(entry, "time"),
    };
    const note = (path: string): void => {
      const known = owners.get(path);
      if (known) known.push(owner);
      else owners.set(path, [owner]);
    };
    if (isMap(entry)) walk(entry.fieldsV1, object, "", note);
  }
  return owners;
}

function walk(fields: Json | undefined, value: Json | undefined, path: string, note: (path: string) => void): void {
  if (!isMap(fields)) return;
  const keys = Object.keys(fields);
  if (keys.length === 0 || "." in fields) note(path);
  for (const key of keys) {
    const [kind, rest] = [key.slice(0, 2), key.slice(2)];
    if (kind === "f:") {
      const inside = isMap(value) && Object.hasOwn(value, rest) ? value[rest] : undefined;
      walk(fields[key], inside, path === "" ? rest : `${path}.${rest}`, note);
    } else if (Array.isArray(value) && key !== ".") {
      const position = positionOf(kind, rest, value);
      if (position >= 0) walk(fields[key], value[position], `${path}[${position}]`, note);
    }
  }
}

function positionOf(kind: string, rest: string, list: Json[]): number {
  let wanted: unknown;
  try {
    wanted = JSON.parse(rest);
  } catch {
    return -1;
  }
  if (kind === "i:") return typeof wanted === "number" ? wanted : -1;
  if (kind === "v:") return list.findIndex((item) => JSON.stringify(item) === JSON.stringify(wanted));
  if (kind !== "k:" || !isMap(wanted)) return -1;
  const keys = Object.entries(wanted);
  return list.findIndex((item) => isMap(item) && keys.every(([key, value]) => item[key] === value));
}
