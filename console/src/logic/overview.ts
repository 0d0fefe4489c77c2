/** Which CRDs Home shows, and in which order. */
import type { OverviewCrd } from "../api/console";

export type Order = "name" | "objects" | "requests" | "failures" | "behind";

export const ORDERS: { value: Order; text: string }[] = [
  { value: "name", text: "Name" },
  { value: "objects", text: "Objects" },
  { value: "requests", text: "Requests" },
  { value: "failures", text: "Failures" },
  { value: "behind", text: "Not migrated" },
];

export function requestsOf(crd: OverviewCrd): number | null {
  return sum(crd.versions.map((version) => version.recent));
}

/** Objects that lie at another version than the storage version. */
export function behindOf(crd: OverviewCrd): number | null {
  return sum(crd.versions.filter((version) => !version.storage).map((version) => version.stored));
}

function sum(numbers: (number | null)[]): number | null {
  return numbers.reduce((left, right) => (left === null || right === null ? null : left + right), 0);
}

const MEASURES: Record<Exclude<Order, "name">, (crd: OverviewCrd) => number | null> = {
  objects: (crd) => crd.total,
  requests: requestsOf,
  failures: (crd) => crd.conversion.failures,
  behind: behindOf,
};

/** The orders that this cluster has numbers for. */
export function measured(orders: typeof ORDERS, crds: OverviewCrd[]): typeof ORDERS {
  return orders.filter(({ value }) => value === "name" || crds.some((crd) => MEASURES[value](crd) !== null));
}

export interface Group {
  group: string;
  crds: OverviewCrd[];
}

/** Words must all be found in the name, kind, group or a version. Groups stand in the order of their first CRD. */
export function shownGroups(crds: OverviewCrd[], search: string, order: Order): Group[] {
  const words = search.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const found = crds.filter((crd) => words.every((word) => searchable(crd).includes(word)));
  found.sort(order === "name" ? byName : byMeasure(MEASURES[order]));
  const groups = new Map<string, OverviewCrd[]>();
  for (const crd of found) {
    const known = groups.get(crd.group);
    if (known) known.push(crd);
    else groups.set(crd.group, [crd]);
  }
  return [...groups].map(([group, members]) => ({ group, crds: members }));
}

function searchable(crd: OverviewCrd): string {
  return [crd.name, crd.kind, ...crd.versions.map((version) => version.name)].join(" ").toLowerCase();
}

function byName(left: OverviewCrd, right: OverviewCrd): number {
  return compare(left.group, right.group) || compare(left.kind, right.kind) || compare(left.name, right.name);
}

function byMeasure(measure: (crd: OverviewCrd) => number | null) {
  return (left: OverviewCrd, right: OverviewCrd) => (measure(right) ?? -1) - (measure(left) ?? -1) || byName(left, right);
}

function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}
