/** Small pieces every page uses. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Problem } from "../api/problem";
import { brief, count } from "../logic/moments";

export function Badge(props: { tone?: "good" | "bad" | "warn" | "info" | "plain"; title?: string; children: ComponentChildren }) {
  return (
    <span class={`badge ${props.tone ?? "plain"}`} title={props.title}>
      {props.children}
    </span>
  );
}

export function Loading(props: { what: string }) {
  return (
    <p class="loading" role="status">
      Reading {props.what} …
    </p>
  );
}

export function Empty(props: { children: ComponentChildren }) {
  return <p class="empty">{props.children}</p>;
}

/** What went wrong, and a way on. */
export function ProblemNote(props: { problem: Problem; retry?: () => void; what?: string }) {
  const { problem, retry, what } = props;
  return (
    <div class="problem" role="alert">
      <strong>{what ?? title(problem)}</strong>
      <p>{problem.message}</p>
      {problem.causes.length > 1 && (
        <ul>
          {problem.causes.slice(0, 20).map((cause, index) => (
            <li key={index}>{cause}</li>
          ))}
        </ul>
      )}
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

function title(problem: Problem): string {
  switch (problem.status) {
    case 0:
      return "The server cannot be reached";
    case 403:
      return "Not allowed";
    case 404:
      return "Not there";
    default:
      return problem.reason === "" ? `The server answered ${problem.status}` : problem.reason;
  }
}

/** A bar of a chart, with its number beside it. */
export function Bar(props: { value: number; most: number; label: string; tone?: string }) {
  const share = props.most > 0 ? Math.max(props.value > 0 ? 2 : 0, (100 * props.value) / props.most) : 0;
  return (
    <span class="bar" role="img" aria-label={`${props.label}: ${count(props.value)}`} title={`${props.label}: ${count(props.value)}`}>
      <span class="track">
        <span class={`fill ${props.tone ?? ""}`} style={{ width: `${share}%` }} />
      </span>
      <span class="number">{brief(props.value)}</span>
    </span>
  );
}

export function Copy(props: { text: () => string; label?: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(props.text());
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  };
  return (
    <button type="button" class="quiet" onClick={() => void copy().catch(() => undefined)}>
      {done ? "Copied" : (props.label ?? "Copy")}
    </button>
  );
}

/** A choice among few, as buttons. */
export function Choice<T extends string>(props: {
  label: string;
  options: readonly { value: T; text: string }[];
  value: T;
  onChoose: (value: T) => void;
}) {
  return (
    <div class="choice" role="group" aria-label={props.label}>
      {props.options.map(({ value, text }) => (
        <button key={value} type="button" aria-pressed={value === props.value} onClick={() => props.onChoose(value)}>
          {text}
        </button>
      ))}
    </div>
  );
}
