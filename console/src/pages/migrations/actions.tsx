/** The actions of a migration; one that is not possible now is disabled, with the reason below it. */
import { useState } from "preact/hooks";
import type { MigrationAction } from "../../api/tools";

const TEXTS: Record<MigrationAction["action"], [string, string]> = {
  start: ["Start", "Rewrite every object at the storage version. Reading and writing go on meanwhile."],
  pause: ["Pause", "Stop after the objects at hand. Nothing is lost."],
  resume: ["Resume", "Go on where it was paused."],
  verify: ["Verify", "Read every object at every served version."],
  trim: ["Trim", "Take versions in which nothing is stored out of status.storedVersions."],
};

/** Pause and Resume are about a migration that runs or is paused: without one there is nothing to say of them. */
function applies({ action, allowed }: MigrationAction): boolean {
  return allowed || (action !== "pause" && action !== "resume");
}

export function Actions(props: { actions: MigrationAction[]; crd: string; onAct: (action: string) => Promise<void> }) {
  const [busy, setBusy] = useState("");
  const act = async (action: string) => {
    setBusy(action);
    await props.onAct(action);
    setBusy("");
  };
  return (
    <section class="card" aria-label="actions">
      <h2>Actions</h2>
      <ul class="steps">
        {props.actions.filter(applies).map(({ action, allowed, why }) => {
          const [text, what] = TEXTS[action];
          return (
            <li key={action} class={allowed ? "free" : "blocked"}>
              <div>
                {allowed ? (
                  <button type="button" class={action === "start" ? "main" : ""} disabled={busy !== ""} onClick={() => void act(action)}>
                    {busy === action ? `${text} …` : text}
                  </button>
                ) : (
                  <button type="button" disabled>
                    {text}
                  </button>
                )}
                <span class="hint">{what}</span>
              </div>
              {!allowed && (
                <ul class="blockers">
                  {why.map((reason) => (
                    <li key={reason}>{reason}</li>
                  ))}
                </ul>
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
}
