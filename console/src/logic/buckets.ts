/** A histogram without the empty ends. */
import { milliseconds } from "./moments";

export interface Bucket {
  /** Undefined: above all bounds. */
  bound: number | undefined;
  count: number;
  label: string;
}

/** Whether so many calls say anything about a quantile: one of them at least lies above it. */
export function supports(calls: number, quantile: number): boolean {
  return Math.round(calls * (1 - quantile) * 1e6) >= 1e6;
}

export function trimmedBuckets(bounds: number[], counts: number[]): Bucket[] {
  const buckets = counts.map((count, index) => {
    const bound = bounds[index];
    const label = bound === undefined ? `above ${milliseconds(bounds.at(-1) ?? 0)}` : `up to ${milliseconds(bound)}`;
    return { bound, count, label };
  });
  const first = buckets.findIndex((bucket) => bucket.count > 0);
  const last = buckets.findLastIndex((bucket) => bucket.count > 0);
  return first < 0 ? [] : buckets.slice(Math.max(0, first - 1), last + 2);
}
