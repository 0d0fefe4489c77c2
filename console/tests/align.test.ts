import { describe, expect, it } from "vitest";
import { align, lines, yamlText } from "../src/logic/align";
import type { Json } from "../src/logic/json";
import { differences, mark, onlyChanges } from "../src/logic/marks";

const texts = (value: Json) => lines(value).map((row) => row.cells[0]);

describe("one value as lines", () => {
  it("is written as YAML", () => {
    const value = { kind: "Widget", spec: { size: 3, on: true, none: null, empty: {}, list: [] } };
    expect(texts(value)).toEqual(["kind: Widget", "spec:", "  size: 3", '  "on": true', "  none: null", "  empty: {}", "  list: []"]);
  });

  it("puts the first key of a list's item behind the dash", () => {
    expect(texts({ tasks: [{ name: "a", size: 1 }, { name: "b" }] })).toEqual(["tasks:", "  - name: a", "    size: 1", "  - name: b"]);
  });

  it("nests lists in lists", () => {
    expect(texts([[1, 2], [3]])).toEqual(["- - 1", "  - 2", "- - 3"]);
  });

  it("quotes what a reader would take for something else", () => {
    expect(texts(["true", "1", "a: b", "", "- x", "names in 日本語", "null"])).toEqual(['- "true"', '- "1"', '- "a: b"', '- ""', '- "- x"', "- names in 日本語", '- "null"']);
  });

  it("writes a text of several lines as a block", () => {
    expect(texts({ script: "a\nb" })).toEqual(["script: |", "  a", "  b"]);
    expect(texts(["a\nb"])).toEqual(["- |", "  a", "  b"]);
  });

  it("cuts a line nobody could read and says how long it is", () => {
    const [line] = texts({ blob: "x".repeat(3_000_000) });
    expect(line).toContain("(3,000,000 characters)");
    expect(line?.length).toBeLessThan(2_100);
  });

  it("does not follow a value deeper than anybody could read", () => {
    let deep: Json = {};
    for (let index = 0; index < 10_000; index++) deep = { a: deep };
    expect(lines(deep).length).toBeLessThan(300);
  });

  it("takes keys of any name for keys", () => {
    const hostile = JSON.parse('{"__proto__": {"constructor": 1}, "<img src=x onerror=alert(1)>": 2}') as Json;
    expect(texts(hostile)).toEqual(["__proto__:", "  constructor: 1", '"<img src=x onerror=alert(1)>": 2']);
  });

  it("gives all of it as text", () => {
    expect(yamlText({ a: [1] })).toBe("a:\n  - 1\n");
  });

  it("is linear: ten times as much takes about ten times as long", () => {
    const timed = (length: number) => {
      const many = Array.from({ length }, (_, index) => ({ name: `n${index}` }));
      const before = performance.now();
      expect(align([many, many]).length).toBe(length);
      return performance.now() - before;
    };
    timed(2_000);
    expect(timed(40_000)).toBeLessThan(60 * timed(4_000) + 50);
  });
});

describe("values side by side", () => {
  it("puts what says the same in one row", () => {
    const rows = align([{ a: 1, b: 2 }, { a: 1, c: 3 }]);
    expect(rows.map((row) => row.cells)).toEqual([["a: 1", "a: 1"], ["b: 2", null], [null, "c: 3"]]);
    expect(rows.map((row) => row.same)).toEqual([true, false, false]);
  });

  it("matches items by their name, wherever they stand", () => {
    const rows = align([[{ name: "a" }, { name: "b", x: 1 }], [{ name: "b", x: 2 }]]);
    expect(rows.map((row) => row.cells)).toEqual([["- name: a", null], ["- name: b", "- name: b"], ["  x: 1", "  x: 2"]]);
  });

  it("matches items that are equal, and others by position", () => {
    expect(align([["a", "b"], ["b"]]).map((row) => row.cells)).toEqual([["- a", null], ["- b", "- b"]]);
    expect(align([[{ x: 1 }], [{ x: 2 }]]).map((row) => row.cells)).toEqual([["- x: 1", "- x: 2"]]);
  });

  it("shows a scalar that became a map", () => {
    const rows = align([{ port: 80 }, { port: { number: 80 } }]);
    expect(rows.map((row) => row.cells)).toEqual([["port: 80", "port:"], [null, "  number: 80"]]);
  });

  it("leaves a column without a value empty", () => {
    expect(align([{ a: 1 }, undefined])[0]?.cells).toEqual(["a: 1", null]);
  });

  it("marks each cell against the reference", () => {
    const [row] = align([{ a: 1 }, { a: 2 }, {}]);
    expect([0, 1, 2].map((column) => row && mark(row, column, 0))).toEqual(["removed", "added", "absent"]);
    const [added] = align([{}, { a: 2 }, { a: 2 }]);
    expect([0, 1, 2].map((column) => added && mark(added, column, 0))).toEqual(["absent", "added", "added"]);
    const [removed] = align([{ a: 1 }, {}]);
    expect([0, 1].map((column) => removed && mark(removed, column, 0))).toEqual(["removed", "absent"]);
    const [partly] = align([{ a: 1 }, {}, { a: 1 }]);
    expect([0, 1, 2].map((column) => partly && mark(partly, column, 0))).toEqual(["removed", "absent", "same"]);
  });

  it("keeps only what differs, with some lines around", () => {
    const object = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`k${index}`, index]));
    const rows = align([object, { ...object, k25: "new" }]);
    const shown = onlyChanges(rows, 2);
    expect(differences(rows)).toBe(1);
    expect(shown.map((row) => row?.path ?? "…")).toEqual(["…", "k23", "k24", "k25", "k26", "k27", "…"]);
    expect(onlyChanges(align([object, object]))).toEqual([]);
  });

  it("names the place of each row", () => {
    expect(align([{ spec: { list: [{ name: "a" }] } }]).map((row) => row.path)).toEqual(["spec", "spec.list", "spec.list[0].name"]);
  });
});
