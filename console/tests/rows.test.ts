import { describe, expect, it } from "vitest";
import { type Change, Rows, type TableRow, columnsOf, rowKey, rowsOf } from "../src/logic/rows";

function row(name: string, changed = 0): TableRow {
  return { key: rowKey("default", name), namespace: "default", name, created: "", deleting: false, cells: [name], changed };
}
const put = (name: string, changed = 1): Change => ({ type: "put", row: row(name, changed) });
const drop = (name: string): Change => ({ type: "drop", key: rowKey("default", name) });
const names = (rows: Rows) => Array.from({ length: rows.size }, (_, index) => rows.at(index)?.name);

describe("rows that are read in pages and watched", () => {
  it("come in the order of the API", () => {
    const rows = new Rows();
    rows.page([row("a"), row("c")], false);
    rows.page([row("e")], true);
    expect(names(rows)).toEqual(["a", "c", "e"]);
  });

  it("take a new object where it belongs", () => {
    const rows = new Rows();
    rows.page([row("a"), row("c")], true);
    rows.apply([put("b"), put("d")]);
    expect(names(rows)).toEqual(["a", "b", "c", "d"]);
  });

  it("keep an event for a row whose page has not come", () => {
    const rows = new Rows();
    rows.page([row("a")], false);
    rows.apply([put("y", 7), drop("z"), put("x")]);
    expect(names(rows)).toEqual(["a"]);
    rows.page([row("y"), row("z")], true);
    expect(names(rows)).toEqual(["a", "x", "y"]);
    expect(rows.at(2)?.changed).toBe(7);
  });

  it("forget what was deleted, and take it back when it is made again", () => {
    const rows = new Rows();
    rows.page([row("a"), row("b")], true);
    rows.apply([drop("a")]);
    rows.apply([drop("a"), put("a")]);
    expect(names(rows)).toEqual(["a", "b"]);
    rows.apply([drop("b"), put("b"), drop("b")]);
    expect(names(rows)).toEqual(["a"]);
  });

  it("say the same however many changes come at once", () => {
    const [one, many] = [new Rows(), new Rows()];
    for (const rows of [one, many]) rows.page(Array.from({ length: 200 }, (_, index) => row(`m${String(index).padStart(3, "0")}`)), true);
    const changes = Array.from({ length: 300 }, (_, index) => (index % 3 === 0 ? drop(`m${String(index % 200).padStart(3, "0")}`) : put(`x${(index * 7) % 90}`)));
    for (const change of changes) one.apply([change]);
    many.apply(changes);
    expect(names(many)).toEqual(names(one));
  });

  it("put a few changes in place without a walk over 100,000 rows", () => {
    const rows = new Rows();
    rows.page(Array.from({ length: 100_000 }, (_, index) => row(`w${String(index).padStart(6, "0")}`)), true);
    const timed = (changes: number) => {
      const before = performance.now();
      rows.apply(Array.from({ length: changes }, (_, index) => put(`w${String(index * 7).padStart(6, "0")}-${changes}`)));
      return performance.now() - before;
    };
    timed(20);
    expect(timed(19)).toBeLessThan(timed(70) + timed(71) + timed(72));
    expect(rows.size).toBe(100_252);
  });

  it("order namespaces as a store does", () => {
    expect(rowKey("a-b", "x") < rowKey("a", "x")).toBe(true);
  });

  it("read a Table of the API, whatever it holds", () => {
    const table = { columnDefinitions: [{ name: "Name", priority: 0 }, { name: "Wide", priority: 1 }], rows: [{ cells: ["a", 3], object: { metadata: { name: "a", namespace: "n" } } }, { cells: ["b"] }, null] };
    expect(columnsOf(table).map((column) => column.priority)).toEqual([0, 1]);
    expect(rowsOf(table).map((found) => found.key)).toEqual(["n/a", "/b", "/"]);
    expect(rowsOf("nothing")).toEqual([]);
  });
});
