import { describe, expect, it } from "vitest";
import { readReport } from "../src/api/rehearsal";
import { distinct } from "../src/logic/failures";
import { measured, ORDERS } from "../src/logic/overview";
import type { OverviewCrd } from "../src/api/console";

const failure = (at: string, text: string) => ({ at, kind: "timeout", text, from: "v1", to: "v2" });

describe("failures of a webhook", () => {
  it("are shown once each, the newest first, with their number", () => {
    const found = distinct([failure("3", "slow"), failure("2", "refused"), failure("1", "slow")]);
    expect(found.map(({ failure, times }) => [failure.text, failure.at, times])).toEqual([
      ["slow", "3", 2],
      ["refused", "2", 1],
    ]);
  });

  it("of other versions are others", () => {
    expect(distinct([failure("2", "slow"), { ...failure("1", "slow"), to: "v3" }])).toHaveLength(2);
  });
});

describe("orders of the home page", () => {
  it("are those that the cluster has numbers for", () => {
    const version = { name: "v1", served: true, storage: false, deprecated: false, stored: null, storedAtMost: 3, recent: null, lastUsed: null };
    const crd = { total: 3, versions: [version], conversion: { strategy: "None", failures: null, lastFailure: null } } as unknown as OverviewCrd;
    expect(measured(ORDERS, [crd]).map(({ value }) => value)).toEqual(["name", "objects"]);
  });
});

describe("a report of a rehearsal", () => {
  it("is told from other files, in words for whoever opened it", () => {
    expect(() => readReport("go: true")).toThrow("-o json=report.json");
    expect(() => readReport('{"format": "instar.dev/review/v1"}')).toThrow("not a report of instar rehearse");
    expect(readReport('{"format": "instar.dev/rehearsal/v1", "go": true, "crds": []}').go).toBe(true);
  });
});
