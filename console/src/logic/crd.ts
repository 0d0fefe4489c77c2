/** What the pages read from a CRD, whatever its shape. */
import { type Json, type JsonMap, isMap, listAt, mapAt, textAt } from "./json";
import { byPriority } from "./versions";

export interface CrdVersion {
  name: string;
  served: boolean;
  storage: boolean;
  deprecated: boolean;
  warning: string;
  schema: Json | undefined;
}

export interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
  since: string;
}

export interface Crd {
  name: string;
  group: string;
  kind: string;
  plural: string;
  namespaced: boolean;
  versions: CrdVersion[];
  conditions: Condition[];
  raw: JsonMap;
}

export function readCrd(raw: JsonMap): Crd {
  const versions = listAt(raw, "spec", "versions").filter(isMap).map(readVersion);
  versions.sort((left, right) => byPriority(left.name, right.name));
  return {
    name: textAt(raw, "metadata", "name"),
    group: textAt(raw, "spec", "group"),
    kind: textAt(raw, "spec", "names", "kind"),
    plural: textAt(raw, "spec", "names", "plural"),
    namespaced: textAt(raw, "spec", "scope") !== "Cluster",
    versions,
    conditions: conditionsOf(raw),
    raw,
  };
}

function readVersion(version: JsonMap): CrdVersion {
  const schema = mapAt(version, "schema").openAPIV3Schema;
  return {
    name: textAt(version, "name"),
    served: version.served === true,
    storage: version.storage === true,
    deprecated: version.deprecated === true,
    warning: textAt(version, "deprecationWarning"),
    schema,
  };
}

export function conditionsOf(raw: JsonMap): Condition[] {
  return listAt(raw, "status", "conditions").map((condition) => ({
    type: textAt(condition, "type"),
    status: textAt(condition, "status"),
    reason: textAt(condition, "reason"),
    message: textAt(condition, "message"),
    since: textAt(condition, "lastTransitionTime"),
  }));
}

/** The version to show objects at: the best one that is served. */
export function bestVersion(crd: Crd): string {
  return (crd.versions.find((version) => version.served) ?? crd.versions[0])?.name ?? "";
}

/** Conditions whose good state is False. */
const FEARED = new Set(["NonStructuralSchema", "Terminating"]);

export function isGood(condition: Condition): boolean {
  return FEARED.has(condition.type) ? condition.status !== "True" : condition.status === "True";
}
