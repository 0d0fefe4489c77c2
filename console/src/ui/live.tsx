/** Whether what is shown follows the server. */
import type { Problem } from "../api/problem";
import type { WatchState } from "../api/watch";

const TEXTS: Record<WatchState, string> = { connecting: "connecting …", live: "live", waiting: "not connected, trying again …" };

export function LiveMark(props: { state: WatchState; problem?: Problem | undefined }) {
  return (
    <span class={`following ${props.state}`} role="status" title={props.problem?.message}>
      <span class="dot" aria-hidden="true" /> {TEXTS[props.state]}
    </span>
  );
}
