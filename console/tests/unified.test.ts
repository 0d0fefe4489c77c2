import { expect, test } from "vitest";
import { align } from "../src/logic/align";
import { supports } from "../src/logic/buckets";
import { unified } from "../src/logic/unified";

test("lines of the old side stand before those of the new, equal lines once", () => {
  const rows = align([{ spec: { address: "a:1", size: 2 } }, { spec: { host: "a", port: "1", size: 2 } }]);

  const lines = unified(rows).map((line) => line && `${line.mark} ${line.text.trim()}`);

  expect(lines).toEqual(["same spec:", 'removed address: "a:1"', "same size: 2", "added host: a", 'added port: "1"']);
});

test("every line of both sides is there, in its order", () => {
  const rows = align([{ a: 1, b: 2, c: 3 }, { a: 1, b: 5, d: 4 }]);

  const lines = unified(rows);

  const side = (index: number) => rows.map((row) => row.cells[index]).filter((cell) => cell != null);
  expect(lines.filter((line) => line?.mark !== "added").map((line) => line?.text)).toEqual(side(0));
  expect(lines.filter((line) => line?.mark !== "removed").map((line) => line?.text)).toEqual(side(1));
});

test("rows that were left out stay one gap", () => {
  expect(unified([null])).toEqual([null]);
});

test("a quantile needs a call above it", () => {
  expect([supports(1, 0.5), supports(2, 0.5), supports(19, 0.95), supports(20, 0.95), supports(99, 0.99), supports(100, 0.99)]).toEqual([false, true, false, true, false, true]);
});
