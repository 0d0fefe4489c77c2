/** A witness as a diff: what was accepted, and what the same object meets now. */
import { type Row, align } from "./align";
import { type Json, isMap } from "./json";

export interface Verdict {
  accepted: boolean;
  errors: string[];
  pruned: string[];
}

export interface WitnessSides {
  object: Json;
  old: Verdict;
  new: Verdict;
}

export function witnessRows(witness: WitnessSides): Row[] {
  const rows = align([pruned(witness.object, witness.old.pruned), pruned(witness.object, witness.new.pruned)]);
  return [...withErrors(withErrors(rows, witness.old, 0), witness.new, 1)];
}

/** An error stands below the line it is about; one about a field that is not there stands at the end. */
function withErrors(rows: Row[], verdict: Verdict, column: number): Row[] {
  const shown = [...rows];
  for (const error of verdict.errors) {
    const split = error.indexOf(": ");
    const path = split < 0 ? "" : error.slice(0, split);
    const place = shown.findIndex((row) => row.path === path);
    const text = place < 0 ? error : error.slice(split + 2);
    const cells = shown[0]?.cells.map((_, index) => (index === column ? text : null)) ?? [];
    shown.splice(place < 0 ? shown.length : place + 1, 0, { path, cells, same: false, problem: true });
  }
  return shown;
}

const STEP = /[^.[\]]+|\[\d+\]/g;

/** A copy without the fields at these paths. */
export function pruned(object: Json, paths: string[]): Json {
  if (paths.length === 0) return object;
  const copy = structuredClone(object);
  for (const path of paths) drop(copy, path.match(STEP) ?? []);
  return copy;
}

function drop(value: Json, steps: string[]): void {
  let inside: Json | undefined = value;
  for (const [index, step] of steps.entries()) {
    const last = index === steps.length - 1;
    if (step.startsWith("[")) {
      inside = Array.isArray(inside) ? inside[Number(step.slice(1, -1))] : undefined;
    } else if (isMap(inside)) {
      if (last) Reflect.deleteProperty(inside, step);
      else inside = Object.hasOwn(inside, step) ? inside[step] : undefined;
    } else return;
  }
}
