/** A histogram without the empty ends. */
import { milliseconds } from "./moments";

export interface Bucket {
  /** Undefined: above all bounds. */
  bound: number | undefined;
  count: number;
  label: string;
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
