/** WCAG AA for every pair of text and ground the style sheet uses, in light and dark. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const sheet = readFileSync(new URL("../src/styles/colours.css", import.meta.url), "utf8");
const colours = new Map([...sheet.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)/g)].map((found) => [found[1] ?? "", [found[2] ?? "", found[3] ?? ""] as const]));

const GROUNDS = ["ground", "raised", "sunken"];
const TEXTS: [string, string][] = [
  ...["text", "quiet", "accent"].flatMap((text) => GROUNDS.map((ground): [string, string] => [text, ground])),
  ["bad", "ground"], ["bad", "raised"], ["on-accent", "accent"], ["accent", "accent-ground"], ["text", "accent-ground"],
  ["good", "good-ground"], ["bad", "bad-ground"], ["warn", "warn-ground"], ["quiet", "accent-ground"],
];
const SHAPES: [string, string][] = [["edge", "ground"], ["bar", "ground"], ["bar-behind", "ground"]];

function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((start) => {
    const share = parseInt(colour.slice(start, start + 2), 16) / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * (red ?? 0) + 0.7152 * (green ?? 0) + 0.0722 * (blue ?? 0);
}

function contrast(one: string, other: string, theme: 0 | 1): number {
  const [left, right] = [one, other].map((name) => luminance(colours.get(name)?.[theme] ?? "#000000"));
  const [low, high] = [Math.min(left ?? 0, right ?? 0), Math.max(left ?? 0, right ?? 0)];
  return (high + 0.05) / (low + 0.05);
}

describe.each([["light", 0], ["dark", 1]] as const)("%s", (_, theme) => {
  it.each(TEXTS)("%s can be read on %s", (text, ground) => {
    expect(colours.has(text) && colours.has(ground)).toBe(true);
    expect(contrast(text, ground, theme)).toBeGreaterThanOrEqual(4.5);
  });
  it.each(SHAPES)("%s can be seen on %s", (shape, ground) => {
    expect(contrast(shape, ground, theme)).toBeGreaterThanOrEqual(3);
  });
});
