import { describe, expect, it } from "vitest";
import { bestVersion, isGood, readCrd } from "../src/logic/crd";
import type { Json } from "../src/logic/json";
import { alignSchemas } from "../src/logic/schemas";
import { byAge, byPriority } from "../src/logic/versions";

const object = (properties: Record<string, Json>, extra: Record<string, Json> = {}): Json => ({ type: "object", properties, ...extra });

describe("schemas side by side", () => {
  it("have a row per field, with what it demands", () => {
    const rows = alignSchemas([object({ spec: object({ size: { type: "integer", minimum: 1, default: 3 } }, { required: ["size"] }) })]);
    expect(rows.map((row) => row.cells[0])).toEqual(["spec: object", "  size: integer, required, ≥ 1, default 3"]);
  });

  it("mark what was added, changed and removed", () => {
    const rows = alignSchemas([object({ a: { type: "string" }, b: { type: "string" } }), object({ a: { type: "string", maxLength: 5 }, c: { type: "string" } })]);
    expect(rows.map((row) => row.cells)).toEqual([["a: string", "a: string, at most 5 characters"], ["b: string", null], [null, "c: string"]]);
  });

  it("go into lists and maps, and show rules", () => {
    const rows = alignSchemas([object({ list: { type: "array", items: object({ x: { type: "string" } }) }, map: { type: "object", additionalProperties: { type: "integer" } } }, { "x-kubernetes-validations": [{ rule: "self.list.size() > 0" }] })]);
    expect(rows.map((row) => row.cells[0]?.trim())).toEqual(["rule self.list.size() > 0", "list: array", "[]: object", "x: string", "map: object", "*: integer"]);
  });

  it("show a document that is no structural schema, too", () => {
    expect(alignSchemas([undefined, null, "text", 3])).toEqual([]);
    const rows = alignSchemas([{ properties: { a: 7, b: { properties: [] }, c: { items: [{}] } } }]);
    expect(rows.map((row) => row.cells[0])).toEqual(["a: not a schema: 7", "b: anything", "c: anything"]);
  });

  it("stop at a depth", () => {
    let deep: Json = { type: "string" };
    for (let index = 0; index < 5_000; index++) deep = object({ a: deep });
    expect(alignSchemas([deep]).length).toBeLessThan(150);
  });

  it("handle 10,000 fields", () => {
    const fields = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`field${index}`, { type: "string" }]));
    expect(alignSchemas([object(fields), object(fields)]).length).toBe(10_000);
  });
});

describe("versions", () => {
  it("stand in Kubernetes' order", () => {
    expect(["v1alpha1", "foo", "v2", "v1beta2", "v10", "v1", "v1beta10"].sort(byPriority)).toEqual(["v10", "v2", "v1", "v1beta10", "v1beta2", "v1alpha1", "foo"]);
    expect(["v1", "v1alpha1", "v1beta1"].sort(byAge)).toEqual(["v1alpha1", "v1beta1", "v1"]);
  });
});

describe("a CRD", () => {
  it("is read whatever its shape", () => {
    expect(readCrd({}).versions).toEqual([]);
    expect(readCrd({ spec: { versions: "none", names: null }, status: { conditions: [null] } }).conditions.length).toBe(1);
    expect(bestVersion(readCrd({}))).toBe("");
  });

  it("shows objects at the best version that is served", () => {
    const crd = readCrd({ spec: { versions: [{ name: "v1beta1", served: true }, { name: "v2", served: false }, { name: "v1", served: true }] } });
    expect(bestVersion(crd)).toBe("v1");
  });

  it("has conditions whose good state is False", () => {
    const condition = { reason: "", message: "", since: "" };
    expect(isGood({ ...condition, type: "NonStructuralSchema", status: "True" })).toBe(false);
    expect(isGood({ ...condition, type: "Established", status: "True" })).toBe(true);
  });
});
