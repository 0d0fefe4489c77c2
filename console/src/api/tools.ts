/** The documents behind Review, Convert, Migrations and Webhooks. */
import type { Json, JsonMap } from "../logic/json";
import type { Unknown } from "./console";
import type { Verdict } from "../logic/witness";

export interface Witness {
  effect: string;
  version: string;
  object: JsonMap;
  old: Verdict;
  new: Verdict;
  before?: JsonMap;
}

export interface Finding {
  rule: string;
  severity: "error" | "warning" | "info";
  version: string;
  path: string;
  message: string;
  hits: string[];
  fingerprint: string;
  details?: string;
  witness?: Witness;
  unwitnessed?: string;
}

export interface PlanStep {
  release: string;
  title: string;
  why: string;
  preconditions: string[];
  commands: string[];
  rollback: string;
}

export interface ReviewedCrd {
  name: string;
  findings: Finding[];
  plan: PlanStep[];
  checklist: { question: string; answer: boolean | null; evidence: string }[];
  stored: { tried: number; objects: Json[] } | null;
}

export interface ReviewReport {
  summary: { error: number; warning: number; info: number };
  crds: ReviewedCrd[];
  onlyOld: string[];
  onlyNew: string[];
  problems: Json[];
}

export interface RuleText {
  id: string;
  severity: string;
  summary: string;
  hits: string[];
  advice: string;
}

export type Side = { crd: string } | { text: string };

export interface Converted {
  crd: string;
  from: string;
  by: string;
  versions: { version: string; served: boolean; storage: boolean; object: JsonMap | null; error: { message: string } | null; seconds: number | null }[];
  refusals: string[];
  pruned: string[];
  roundTrip: { through: string; differences: string[] } | null;
}

export interface Counterexample {
  message: string;
  steps: { caption: string; value: Json }[];
  differences: Json[];
}

export interface LawCheck {
  law: string;
  title: string;
  from: string;
  to: string;
  verdict: "kept" | "broken" | "unchecked";
  objects: number;
  seconds: number;
  note?: string;
  counterexample?: Counterexample;
}

export interface CheckReport {
  crd: string;
  converter: string;
  seed: number;
  losses: Json[];
  checks: LawCheck[];
  complete: boolean;
}

export interface MigrationAction {
  action: "start" | "pause" | "resume" | "verify" | "trim";
  allowed: boolean;
  why: string[];
}

export interface Migration {
  name: string;
  state: "waiting" | "running" | "paused" | "succeeded" | "failed";
  message: string;
  total: number | null;
  left: number | null;
  failed: number;
  failures: { object: string; message: string }[];
  started: string | null;
  seconds: number | null;
  perSecond: number | null;
  secondsLeft: number | null;
}

export interface MigrationDocument {
  crd: string;
  plan: {
    storageVersion: string;
    storedVersions: string[];
    objects: number | null;
    needed: boolean;
    obstacles: string[];
    warnings: string[];
    expectedSeconds: number | null;
  } | null;
  engine: "server" | "local";
  migration: Migration | null;
  stale: number | null;
  actions: MigrationAction[];
  verified?: { objects: number; ok: boolean; problems: { object: string; version: string; message: string }[] };
}

export interface Webhook {
  id: string;
  type: "conversion" | "mutating" | "validating";
  name: string;
  crd: string | null;
  configuration: string | null;
  where: string;
  failurePolicy: string | null;
  timeoutSeconds: number | null;
  health: "ok" | "failing" | "degraded" | "expired" | "idle" | "unknown";
  why: string;
  /** Null on a cluster that does not count calls. */
  calls: number | null;
  failures: number | null;
  rejected: number | null;
  latency: { bounds: number[]; counts: number[]; sum: number; p50: number | null; p95: number | null; p99: number | null } | null;
  minutes: { at: string; calls: number; failures: number }[];
  recentFailures: { at: string; kind: string; text: string; from?: string; to?: string }[];
  certificates: { what: string; subject: string; notAfter: string; daysLeft: number; problem: string }[];
}

export interface Webhooks {
  webhooks: Webhook[];
  since: string | null;
  unknown: Unknown[];
}

export const REVIEW = "/console/api/review";
export const RULES = "/console/api/rules";
export const CONVERT = "/console/api/convert";
export const CHECK = "/console/api/check";
export const WEBHOOKS = "/console/api/webhooks";
