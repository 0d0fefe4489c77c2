/** How far a migration is. */
import type { Migration } from "../../api/tools";
import { ago, count, lasting, plural } from "../../logic/moments";
import { Badge } from "../../ui/bits";

const TONES = { waiting: "plain", running: "info", paused: "warn", succeeded: "good", failed: "bad" } as const;

export function Progress(props: { migration: Migration; engine: string }) {
  const { migration } = props;
  const { total, left } = migration;
  const known = total !== null && left !== null;
  return (
    <section class="card" aria-label="progress">
      <h2>
        {migration.name} <Badge tone={TONES[migration.state]}>{migration.state}</Badge>
        <span class="hint">{props.engine === "local" ? "runs in instar console" : "runs on the server"}</span>
      </h2>
      {known && <progress max={Math.max(1, total)} value={total - left} aria-label="objects rewritten" />}
      <p role="status">
        {known && `${count(total - left)} of ${plural(total, "object")}`}
        {migration.perSecond !== null && `, ${count(Math.round(migration.perSecond))} per second`}
        {migration.state === "running" && migration.secondsLeft !== null && `, about ${lasting(Math.max(1, migration.secondsLeft))} left`}
      </p>
      <p class="hint">
        {migration.message}
        {migration.started && ` Started ${ago(migration.started, Date.now())}.`}
      </p>
      {migration.failed > 0 && (
        <div class="problem">
          <strong>{plural(migration.failed, "object")} could not be rewritten</strong>
          <ul>
            {migration.failures.slice(0, 100).map((failure, index) => (
              <li key={index}>
                <strong>{failure.object}</strong>: {failure.message}
              </li>
            ))}
          </ul>
        </div>
      )}
    </section>
  );
}
