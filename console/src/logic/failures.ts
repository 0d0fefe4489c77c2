/** Failures of a webhook without their repetitions: each once, with the time of the last and how often. */
export interface Failure {
  at: string;
  kind: string;
  text: string;
  from?: string;
  to?: string;
}

/** `failures` are the newest first, and so is what is returned. */
export function distinct<T extends Failure>(failures: T[]): { failure: T; times: number }[] {
  const found = new Map<string, { failure: T; times: number }>();
  for (const failure of failures) {
    const key = [failure.kind, failure.text, failure.from, failure.to].join("\n");
    const known = found.get(key);
    if (known) known.times += 1;
    else found.set(key, { failure, times: 1 });
  }
  return [...found.values()];
}
