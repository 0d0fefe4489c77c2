import { describe, expect, it } from "vitest";
import type { OverviewCrd } from "../src/api/console";
import { problemFrom, problemOf } from "../src/api/problem";
import { trimmedBuckets } from "../src/logic/buckets";
import { ago, brief, lasting, milliseconds, shortAge } from "../src/logic/moments";
import { behindOf, requestsOf, shownGroups } from "../src/logic/overview";
import { ownersOf } from "../src/logic/owners";
import { collectionPath, namesOf, objectPath, pageParts, pagePath, withQuery } from "../src/logic/paths";
import { packed, unpacked } from "../src/logic/permalink";
import { pruned, witnessRows } from "../src/logic/witness";

function crd(name: string, extra: Partial<OverviewCrd> = {}): OverviewCrd {
  const { plural, group } = namesOf(name);
  return { name, group, plural, kind: plural, scope: "Namespaced", resourceVersion: "1", created: "", established: true, deleting: false, problems: [], conversion: { strategy: "None", failures: 0, lastFailure: null }, storageVersion: "v1", storedVersions: ["v1"], total: 0, migrating: false, versions: [], ...extra };
}
const version = (name: string, storage: boolean, stored: number | null, recent: number | null) => ({ name, served: true, storage, deprecated: false, stored, storedAtMost: stored, recent, lastUsed: null });

describe("home", () => {
  it("groups by API group and searches by every word", () => {
    const crds = [crd("widgets.b.io"), crd("gadgets.a.io"), crd("wheels.a.io", { versions: [version("v1beta1", true, 0, 0)] })];
    expect(shownGroups(crds, "", "name").map((group) => [group.group, group.crds.length])).toEqual([["a.io", 2], ["b.io", 1]]);
    expect(shownGroups(crds, "a.io V1BETA", "name")[0]?.crds.map((one) => one.name)).toEqual(["wheels.a.io"]);
    expect(shownGroups(crds, "nothing", "name")).toEqual([]);
  });

  it("sorts by numbers, what is not known last", () => {
    const crds = [crd("a.x.io", { total: null }), crd("b.x.io", { total: 5 }), crd("c.x.io", { total: 50 })];
    expect(shownGroups(crds, "", "objects")[0]?.crds.map((one) => one.name)).toEqual(["c.x.io", "b.x.io", "a.x.io"]);
  });

  it("counts what is not at the storage version, and says when it does not know", () => {
    const known = crd("a.x.io", { versions: [version("v1", true, 5, 10), version("v1beta1", false, 3, 1)] });
    expect([behindOf(known), requestsOf(known)]).toEqual([3, 11]);
    expect(behindOf(crd("a.x.io", { versions: [version("v1beta1", false, null, null)] }))).toBeNull();
  });
});

describe("owners of fields", () => {
  it("are found by key, value and position", () => {
    const object = {
      metadata: {
        managedFields: [
          { manager: "kubectl", operation: "Apply", apiVersion: "e/v1", fieldsV1: { "f:spec": { "f:size": {}, "f:list": { 'k:{"name":"b"}': { ".": {}, "f:x": {} } }, "f:set": { 'v:"two"': {} } } } },
          { manager: "other", fieldsV1: { "f:spec": { "f:size": {}, "f:gone": { "k:broken": {} } } } },
          "nonsense",
        ],
      },
      spec: { size: 1, list: [{ name: "a" }, { name: "b", x: 1 }], set: ["one", "two"] },
    };
    const owners = ownersOf(object);
    expect(owners.get("spec.size")?.map((owner) => owner.manager)).toEqual(["kubectl", "other"]);
    expect([...owners.keys()]).toEqual(["spec.size", "spec.list[1]", "spec.list[1].x", "spec.set[1]"]);
  });
});

describe("addresses", () => {
  it("hold any name", () => {
    const path = pagePath("object", "w.e.io", "ns", "日本/<b>");
    expect(pageParts(path)).toEqual(["object", "w.e.io", "ns", "日本/<b>"]);
    expect(pageParts("/elsewhere")).toBeUndefined();
    expect(pageParts("/console/%E0%A4%A")).toBeUndefined();
  });

  it("lead to the API", () => {
    const names = namesOf("widgets.example.com");
    expect(collectionPath(names, "v1")).toBe("/apis/example.com/v1/widgets");
    expect(objectPath(names, "v1", "default", "a")).toBe("/apis/example.com/v1/namespaces/default/widgets/a");
    expect(withQuery("/x", { a: "1,2", b: "", c: undefined })).toBe("/x?a=1%2C2");
  });

  it("carry texts that no server sees", async () => {
    const value = { text: "kind: Widget\n".repeat(200), name: "日本語" };
    const link = await packed(value);
    expect(link).toMatch(/^[\w-]+$/);
    expect(link.length).toBeLessThan(300);
    expect(await unpacked(link)).toEqual(value);
    expect(await unpacked("garbage!")).toBeUndefined();
  });
});

describe("a witness", () => {
  const verdict = { accepted: true, errors: [], pruned: [] };

  it("loses what is pruned now", () => {
    const rows = witnessRows({ object: { spec: { a: 1, b: 2 } }, old: verdict, new: { ...verdict, pruned: ["spec.a"] } });
    expect(rows.map((row) => row.cells)).toEqual([["spec:", "spec:"], ["  a: 1", null], ["  b: 2", "  b: 2"]]);
  });

  it("shows an error at its line, or at the end", () => {
    const errors = ["spec.a: Invalid value: 1: too small", "spec.c: Required value", "no place"];
    const rows = witnessRows({ object: { spec: { a: 1 } }, old: verdict, new: { accepted: false, errors, pruned: [] } });
    expect(rows.map((row) => row.cells[1])).toEqual(["spec:", "  a: 1", "Invalid value: 1: too small", "spec.c: Required value", "no place"]);
    expect(rows.map((row) => row.problem === true)).toEqual([false, false, true, true, true]);
  });

  it("takes paths that lead nowhere", () => {
    expect(pruned({ list: [{ a: 1, b: 1 }] }, ["list[0].a", "list[7].a", "x.y", ""])).toEqual({ list: [{ b: 1 }] });
  });
});

describe("texts", () => {
  const now = Date.parse("2026-01-02T00:00:00Z");
  it("say how long ago", () => {
    expect(ago("2026-01-01T23:46:00Z", now)).toBe("14 minutes ago");
    expect(ago("2026-01-02T00:00:00Z", now)).toBe("just now");
    expect(ago("nonsense", now)).toBe("at an unknown time");
    expect([lasting(1), lasting(90_000)]).toEqual(["1 second", "1 day"]);
    expect([shortAge("2026-01-01T00:00:00Z", now), shortAge("x", now)]).toEqual(["1d", "<unknown>"]);
  });

  it("say amounts", () => {
    expect([brief(9_999), brief(123_456), milliseconds(0.0021), milliseconds(0.0000004), milliseconds(0.15), milliseconds(2)]).toEqual(["9,999", "123.5K", "2.1 ms", "0.4 µs", "150 ms", "2 s"]);
  });

  it("say what went wrong", () => {
    const status = JSON.stringify({ kind: "Status", reason: "Invalid", message: "no", details: { causes: [{ field: "spec", message: "bad" }] } });
    expect(problemOf(422, status)).toMatchObject({ status: 422, reason: "Invalid", message: "no", causes: ["spec: bad"] });
    expect(problemOf(404, "404 page not found").message).toBe("404 page not found");
    expect(problemOf(502, "").message).toBe("the server answered 502");
    expect(problemFrom(new TypeError("failed")).message).toContain("cannot be reached");
  });
});

describe("a histogram", () => {
  it("loses its empty ends", () => {
    expect(trimmedBuckets([1, 2, 3, 4, 5], [0, 0, 7, 1, 0, 0]).map((bucket) => bucket.count)).toEqual([0, 7, 1, 0]);
    expect(trimmedBuckets([1], [0, 0])).toEqual([]);
  });
});
