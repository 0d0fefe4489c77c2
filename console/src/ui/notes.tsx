/** What a page cannot show on this cluster, and why: one quiet paragraph for all of it. */
import type { Unknown } from "../api/console";

export function Notes(props: { unknown: Unknown[] }) {
  const said = [...new Set(props.unknown.map((one) => sentence(one.why)))];
  return said.length === 0 ? null : <p class="hint notes">{said.join(" ")}</p>;
}

function sentence(text: string): string {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}
