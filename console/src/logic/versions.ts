/** Kubernetes' order of versions: v2 before v1 before v1beta2 before v1alpha1, then the alphabet. */

const FORM = /^v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?$/;
const STAGES: Record<string, number> = { alpha: 0, beta: 1 };

function rank(version: string): [number, number, number] | undefined {
  const found = FORM.exec(version);
  if (!found) return undefined;
  return [found[2] ? (STAGES[found[2]] ?? 0) : 2, Number(found[1]), Number(found[3] ?? 0)];
}

/** Best first. */
export function byPriority(left: string, right: string): number {
  const [a, b] = [rank(left), rank(right)];
  if (a && b) return b[0] - a[0] || b[1] - a[1] || b[2] - a[2];
  if (a) return -1;
  if (b) return 1;
  return left < right ? -1 : left > right ? 1 : 0;
}

/** As a life goes: the oldest version first. */
export function byAge(left: string, right: string): number {
  return byPriority(right, left);
}
