/** Plain JSON values, as the API sends them. Nothing here trusts their shape. */

export type Json = null | boolean | number | string | Json[] | JsonMap;
export interface JsonMap {
  [key: string]: Json;
}

export function isMap(value: unknown): value is JsonMap {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value under a path of keys, or undefined where one of them is missing. */
export function at(value: unknown, ...keys: string[]): Json | undefined {
  let found: unknown = value;
  for (const key of keys) {
    if (!isMap(found) || !Object.hasOwn(found, key)) return undefined;
    found = found[key];
  }
  return found as Json;
}

export function textAt(value: unknown, ...keys: string[]): string {
  const found = at(value, ...keys);
  return typeof found === "string" ? found : "";
}

export function listAt(value: unknown, ...keys: string[]): Json[] {
  const found = at(value, ...keys);
  return Array.isArray(found) ? found : [];
}

export function mapAt(value: unknown, ...keys: string[]): JsonMap {
  const found = at(value, ...keys);
  return isMap(found) ? found : {};
}
