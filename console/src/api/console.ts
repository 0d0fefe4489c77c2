/** The documents of `/console/api`, as docs/reference/console-api.md describes them. */
import type { JsonMap } from "../logic/json";

export interface Unknown {
  what: string;
  why: string;
}

export interface OverviewVersion {
  name: string;
  served: boolean;
  storage: boolean;
  deprecated: boolean;
  stored: number | null;
  storedAtMost: number | null;
  recent: number | null;
  lastUsed: string | null;
}

export interface OverviewCrd {
  name: string;
  group: string;
  kind: string;
  plural: string;
  scope: string;
  resourceVersion: string;
  created: string;
  established: boolean;
  deleting: boolean;
  problems: string[];
  conversion: { strategy: string; failures: number | null; lastFailure: string | null };
  storageVersion: string;
  storedVersions: string[];
  total: number | null;
  migrating: boolean;
  versions: OverviewVersion[];
}

export interface Overview {
  exact: boolean;
  usageSince: string | null;
  recentSince: string | null;
  crds: OverviewCrd[];
  unknown: Unknown[];
}

export interface Use {
  verb: string;
  user: string;
  userAgent: string;
  count: number;
  last: string;
  ago: string;
}

export interface NextStep {
  step: string;
  blockedBy: string[];
  why: string;
  command: string;
}

export interface LifecycleVersion {
  name: string;
  served: boolean;
  storage: boolean;
  deprecated: boolean;
  stored: { atLeast: number; atMost: number } | null;
  uses: Use[];
  next: NextStep[];
}

export interface ConversionPair {
  from: string;
  to: string;
  by: string;
  count: number | null;
  failures: number | null;
  meanSeconds: number | null;
  p99Seconds: number | null;
  lastFailure: { when: string; text: string } | null;
}

export interface Lifecycle {
  crd: string;
  storedVersions: string[];
  census: { exact: boolean; how: string; counted: boolean; objects: Record<string, number>; unknown: number };
  usageSince: string | null;
  quietDays: number;
  versions: LifecycleVersion[];
  conversions: ConversionPair[];
  unknown: Unknown[];
}

export interface FieldUse {
  path: string;
  objects: number;
  inSchema: boolean;
  managers: Record<string, number>;
  deprecated: string | null;
}

export interface FieldUsage {
  crd: string;
  version: string;
  objects: number;
  complete: boolean;
  fields: FieldUse[];
  never: string[];
}

export function overviewPath(): string {
  return "/console/api/overview";
}

export function lifecyclePath(crd: string): string {
  return `/console/api/crds/${encodeURIComponent(crd)}/versions`;
}

export function stepPath(crd: string, version: string, step: string): string {
  return `${lifecyclePath(crd)}/${encodeURIComponent(version)}/${encodeURIComponent(step)}`;
}

export function fieldsPath(crd: string): string {
  return `/console/api/crds/${encodeURIComponent(crd)}/fields`;
}

export function everyVersionPath(crd: string, namespace: string, name: string): string {
  const [inside, called] = [namespace === "" ? "_" : namespace, name].map(encodeURIComponent);
  return `/console/api/crds/${encodeURIComponent(crd)}/objects/${inside ?? "_"}/${called ?? ""}`;
}

export function migrationPath(crd: string): string {
  return `/console/api/crds/${encodeURIComponent(crd)}/migration`;
}

export interface ObjectVersion {
  version: string;
  served: boolean;
  storage: boolean;
  stored: boolean | null;
  object: JsonMap | null;
  error: { message: string } | null;
}

export interface EveryVersion {
  crd: string;
  storedVersion: string | null;
  storedBytes: number | null;
  versions: ObjectVersion[];
}
