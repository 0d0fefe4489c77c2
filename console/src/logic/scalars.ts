/** One JSON scalar as YAML writes it: quoted only where a reader would take it for something else. */
import type { Json } from "./json";

const PLAIN = /^[\p{L}_/][\p{L}\p{M}\p{N}_./@+-]*( [\p{L}\p{M}\p{N}_./@+-]+)*$/u;
const WORDS = /^(true|false|null|yes|no|on|off|y|n|~)$/i;
/** Longer lines are cut on the screen; copy and the JSON twin have all of them. */
export const LONGEST_LINE = 2_000;

export function scalarText(value: Json): string {
  if (typeof value === "string") return stringText(value);
  if (Array.isArray(value)) return "[]";
  if (value !== null && typeof value === "object") return "{}";
  return String(value);
}

function stringText(value: string): string {
  if (value.length > LONGEST_LINE) {
    const shown = JSON.stringify(value.slice(0, LONGEST_LINE)).slice(0, -1);
    return `${shown}… (${value.length.toLocaleString("en")} characters)`;
  }
  return PLAIN.test(value) && !WORDS.test(value) ? value : JSON.stringify(value);
}
