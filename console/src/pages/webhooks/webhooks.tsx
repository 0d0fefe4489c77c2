/** The webhooks the server depends on: do they answer, how fast, and until when are they trusted. */
import { json } from "../../api/client";
import { WEBHOOKS, type Webhook, type Webhooks } from "../../api/tools";
import { supports } from "../../logic/buckets";
import { distinct } from "../../logic/failures";
import { ago, count, milliseconds, plural } from "../../logic/moments";
import { pagePath } from "../../logic/paths";
import { Badge, Choice, Empty, Loading, ProblemNote } from "../../ui/bits";
import { Page } from "../../ui/page";
import { Notes } from "../../ui/notes";
import { useEvery, useRead } from "../../ui/resource";
import { choose, route } from "../../ui/router";
import { Histogram, Minutes } from "./charts";

const TONES = { ok: "good", failing: "bad", degraded: "warn", expired: "bad", idle: "plain", unknown: "plain" } as const;
const SOON = 30;
const FAR = 3_650;
const TYPES = [
  { value: "all", text: "All" },
  { value: "conversion", text: "Conversion" },
  { value: "mutating", text: "Mutating" },
  { value: "validating", text: "Validating" },
] as const;
type Type = (typeof TYPES)[number]["value"];

export function WebhooksPage() {
  const read = useRead<Webhooks>("webhooks", (signal) => json<Webhooks>(WEBHOOKS, { signal }));
  useEvery(5, read.reload);
  const found = read.value;
  const type = TYPES.find(({ value }) => value === route.value.query.get("type"))?.value ?? "all";
  const shown = (found?.webhooks ?? []).filter((one) => type === "all" || one.type === type);
  return (
    <Page title="Webhooks" twins={[{ text: "webhooks", href: WEBHOOKS }]}>
      <div class="toolbar">
        <Choice<Type> label="kinds of webhooks" options={TYPES} value={type} onChoose={(value) => choose({ type: value === "all" ? undefined : value })} />
        {found?.since && <span class="hint">counted since {ago(found.since, Date.now())}</span>}
      </div>
      {read.problem && <ProblemNote problem={read.problem} retry={read.reload} />}
      {!found && read.loading && <Loading what="webhooks" />}
      {found && <Notes unknown={found.unknown} />}
      {found && shown.length === 0 && <Empty>No webhook is configured.</Empty>}
      <div class="cards">
        {shown.map((webhook) => (
          <WebhookCard key={webhook.id} webhook={webhook} />
        ))}
      </div>
    </Page>
  );
}

function WebhookCard(props: { webhook: Webhook }) {
  const { webhook } = props;
  const { latency } = webhook;
  return (
    <section class="card webhook" aria-label={webhook.name} id={webhook.id}>
      <h2>
        {webhook.crd === null ? webhook.name : <a href={pagePath("crds", webhook.crd)}>{webhook.name}</a>} {webhook.health !== "unknown" && <Badge tone={TONES[webhook.health]}>{webhook.health}</Badge>} <Badge>{webhook.type}</Badge>
      </h2>
      <p class="hint">
        {webhook.configuration !== null && `${webhook.configuration}, `}
        {webhook.where}
        {webhook.timeoutSeconds !== null && `, at most ${webhook.timeoutSeconds} s`}
        {webhook.failurePolicy !== null && `, on failure: ${webhook.failurePolicy}`}
      </p>
      {webhook.why !== "" && <p class="hint">{webhook.why}</p>}
      {webhook.calls !== null && webhook.calls > 0 && (
        <dl class="numbers">
          <Number_ name="calls" value={count(webhook.calls)} />
          {latency && (
            <>
              <Number_ name="mean" value={quantile(latency.sum / Math.max(1, webhook.calls))} />
              {supports(webhook.calls, 0.5) && <Number_ name="p50" value={quantile(latency.p50)} />}
              {supports(webhook.calls, 0.95) && <Number_ name="p95" value={quantile(latency.p95)} />}
              {supports(webhook.calls, 0.99) && <Number_ name="p99" value={quantile(latency.p99)} />}
            </>
          )}
          {(webhook.failures ?? 0) > 0 && <Number_ name="failed" value={count(webhook.failures ?? 0)} bad />}
          {(webhook.rejected ?? 0) > 0 && <Number_ name="refused" value={count(webhook.rejected ?? 0)} />}
        </dl>
      )}
      {latency && <Histogram bounds={latency.bounds} counts={latency.counts} />}
      {webhook.minutes.length > 0 && <Minutes minutes={webhook.minutes} />}
      <Failures webhook={webhook} />
      {webhook.certificates.length > 0 && (
        <ul class="certificates" aria-label="certificates">
          {webhook.certificates.map((one) => (
            <li key={one.what + one.subject}>
              <Badge tone={one.problem !== "" || one.daysLeft < 0 ? "bad" : one.daysLeft < SOON ? "warn" : "good"}>{validity(one.daysLeft)}</Badge> <strong>{one.what}</strong>{" "}
              <span class="hint">until {one.notAfter.slice(0, 10)}</span>
              <div class="mono hint">{one.subject}</div>
              {one.problem !== "" && <p class="bad">{one.problem}</p>}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Number_(props: { name: string; value: string; bad?: boolean }) {
  return (
    <div class={props.bad ? "bad" : ""}>
      <dt>{props.name}</dt>
      <dd>{props.value}</dd>
    </div>
  );
}

function validity(daysLeft: number): string {
  if (daysLeft < 0) return "expired";
  return daysLeft > FAR ? "valid" : `${plural(daysLeft, "day")} left`;
}

function quantile(seconds: number | null): string {
  return seconds === null ? "–" : milliseconds(seconds);
}

function Failures(props: { webhook: Webhook }) {
  const failures = distinct(props.webhook.recentFailures);
  if (failures.length === 0) return null;
  return (
    <details open={props.webhook.health === "failing"}>
      <summary>Last failures ({props.webhook.recentFailures.length})</summary>
      <ul class="conditions">
        {failures.map(({ failure, times }) => (
          <li key={failure.kind + failure.text}>
            <Badge tone="bad">{failure.kind}</Badge> {failure.text}{" "}
            <span class="hint">
              {failure.from && `${failure.from} to ${failure.to ?? "?"}, `}
              {ago(failure.at, Date.now())}
              {times > 1 && `, ${plural(times, "time")}`}
            </span>
          </li>
        ))}
      </ul>
    </details>
  );
}
