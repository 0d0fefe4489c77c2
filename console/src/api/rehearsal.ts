/** A report of `instar rehearse -o json`, as far as the page shows it. */
import { isMap, type Json } from "../logic/json";

export interface Damages {
  counts: Record<string, number>;
  examples: { object: string; version: string; damage: string; reasons: string[]; diff: string[] }[];
}

export interface RehearsedStep {
  release: string;
  title: string;
  standing: string;
  refused: string[] | string | null;
  unknown: Record<string, string>;
  objects: Damages;
  clients: Record<string, { standing: string; requests: number; reasons: string[] }>;
  wayBack: { way: string; why: string };
}

export interface RehearsedCrd {
  name: string;
  objects: number;
  noWayBackFrom: string | null;
  steps: RehearsedStep[];
  faults: { fault: string; recovered: boolean; happened: boolean; evidence: string }[];
}

export interface RehearsalReport {
  format: string;
  go: boolean;
  reasons: { word: string; text: string }[];
  warnings: string[];
  origin: string;
  releases: string[];
  objects: number;
  seconds: number;
  crds: RehearsedCrd[];
  assumptions: string[];
  problems: string[];
}

export const FORMAT = "instar.dev/rehearsal/v1";

/** Raises an `Error` whose text is for the page. */
export function readReport(text: string): RehearsalReport {
  let found: Json;
  try {
    found = JSON.parse(text) as Json;
  } catch {
    throw new Error("This is not JSON. Save the report with: instar rehearse … -o json=report.json");
  }
  if (!isMap(found) || found.format !== FORMAT || !Array.isArray(found.crds))
    throw new Error(`This is not a report of instar rehearse (format ${FORMAT}).`);
  return found as unknown as RehearsalReport;
}
