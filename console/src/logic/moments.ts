/** Times and amounts as people read them. */

const STEPS: [number, string][] = [
  [86_400, "day"],
  [3_600, "hour"],
  [60, "minute"],
  [1, "second"],
];

export function ago(moment: string, now: number): string {
  const seconds = (now - Date.parse(moment)) / 1_000;
  if (Number.isNaN(seconds)) return "at an unknown time";
  if (seconds < 1) return seconds > -60 ? "just now" : `in ${lasting(-seconds)}`;
  return `${lasting(seconds)} ago`;
}

export function lasting(seconds: number): string {
  for (const [size, word] of STEPS)
    if (seconds >= size) {
      const number = Math.floor(seconds / size);
      return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
    }
  return "no time";
}

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export function count(number: number): string {
  return whole.format(number);
}

/** At most five characters: 12.3K. */
export function brief(number: number): string {
  return number < 10_000 ? whole.format(number) : short.format(number);
}

export function plural(number: number, word: string, many = `${word}s`): string {
  return `${count(number)} ${number === 1 ? word : many}`;
}

export function milliseconds(seconds: number): string {
  if (seconds >= 1) return `${rounded(seconds)} s`;
  return seconds >= 0.001 ? `${rounded(seconds * 1e3)} ms` : `${rounded(seconds * 1e6)} µs`;
}

/** Two digits are enough to see; more are kept in front of the point. */
function rounded(number: number): string {
  return number >= 10 ? whole.format(Math.round(number)) : String(Math.round(number * 10) / 10);
}

/** As tables write it: 5d, 3h, 12m, 40s. */
export function shortAge(moment: string, now: number): string {
  const seconds = Math.max(0, Math.floor((now - Date.parse(moment)) / 1_000));
  if (Number.isNaN(seconds)) return "<unknown>";
  for (const [size, word] of STEPS) if (seconds >= size) return `${Math.floor(seconds / size)}${word.charAt(0)}`;
  return "0s";
}
