/** The report of a rehearsal: go or no-go, and for each step what it does to objects and clients. */
import type { Damages, RehearsalReport, RehearsedCrd, RehearsedStep } from "../../api/rehearsal";
import { plural } from "../../logic/moments";
import { Badge } from "../../ui/bits";

export function RehearsalView(props: { report: RehearsalReport }) {
  const { report } = props;
  return (
    <section aria-label="report" aria-live="polite">
      <p class={`verdict ${report.go ? "go" : "no-go"}`}>
        <strong>{report.go ? "GO" : "NO-GO"}</strong> {plural(report.objects, "object")} of {report.origin}
      </p>
      <Lines items={report.reasons.map((reason) => reason.text)} tone="bad" />
      <Lines items={report.problems} tone="bad" />
      <Lines items={report.warnings} tone="warn" />
      {report.crds.map((crd) => (
        <OneCrd key={crd.name} crd={crd} />
      ))}
      {report.assumptions.length > 0 && (
        <details>
          <summary>Assumptions ({report.assumptions.length})</summary>
          <Lines items={report.assumptions} />
        </details>
      )}
    </section>
  );
}

function Lines(props: { items: string[]; tone?: string }) {
  if (props.items.length === 0) return null;
  return (
    <ul class={`conditions ${props.tone ?? ""}`}>
      {props.items.map((item) => (
        <li key={item}>{item}</li>
      ))}
    </ul>
  );
}

function OneCrd(props: { crd: RehearsedCrd }) {
  const { crd } = props;
  const faults = crd.faults.filter((fault) => fault.happened);
  return (
    <section class="card" aria-label={crd.name}>
      <h2>
        {crd.name} <span class="hint">{plural(crd.objects, "object")}</span>
      </h2>
      {crd.noWayBackFrom !== null && <p class="note">There is no way back from “{crd.noWayBackFrom}”.</p>}
      <ol class="plan">
        {crd.steps.map((step, index) => (
          <Step key={index} step={step} />
        ))}
      </ol>
      {faults.length > 0 && (
        <>
          <h3>Faults</h3>
          <ul class="conditions">
            {faults.map((fault) => (
              <li key={fault.fault}>
                <Badge tone={fault.recovered ? "good" : "bad"}>{fault.recovered ? "recovered" : "not recovered"}</Badge> {fault.fault} <span class="hint">{fault.evidence}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

const WAYS_BACK: Record<string, string> = {
  free: "This step can be undone.",
  "with a migration": "This step can be undone with a migration.",
  "with losses": "This step can be undone, but data is lost.",
  none: "This step cannot be undone.",
  unknown: "Whether this step can be undone was not tested.",
};

function Step(props: { step: RehearsedStep }) {
  const { step } = props;
  const clients = Object.entries(step.clients);
  return (
    <li>
      <div>
        <Badge tone={toneOf(step.standing)}>{step.standing}</Badge> <strong>{step.title}</strong> {step.release !== "" && <span class="hint">{step.release}</span>}
      </div>
      <Counts damages={step.objects} />
      {clients.map(([name, client]) => (
        <p key={name}>
          <Badge tone={toneOf(client.standing)}>{client.standing}</Badge> {name} <span class="hint">{[plural(client.requests, "request"), ...client.reasons].join("; ")}</span>
        </p>
      ))}
      {step.objects.examples.slice(0, 3).map((example, index) => (
        <details key={example.object + example.version} open={index === 0}>
          <summary>
            {example.object} at {example.version}: {example.damage}
          </summary>
          {example.reasons.map((reason) => (
            <p key={reason}>{reason}</p>
          ))}
          {example.diff.length > 0 && <Diff lines={example.diff} />}
        </details>
      ))}
      {Object.entries(step.unknown).map(([what, why]) => (
        <p key={what} class="hint">
          Not tested: {what} ({why})
        </p>
      ))}
      {step.wayBack.way !== "" && (
        <p class="hint">
          {WAYS_BACK[step.wayBack.way] ?? step.wayBack.way}
          {step.wayBack.why !== "" && ` (${step.wayBack.why})`}
        </p>
      )}
    </li>
  );
}

function Counts(props: { damages: Damages }) {
  const counts = Object.entries(props.damages.counts).filter(([, number]) => number > 0);
  if (counts.length === 0) return null;
  return <p>{counts.map(([damage, number]) => `${plural(number, "object")} ${damage}`).join(", ")}</p>;
}

function Diff(props: { lines: string[] }) {
  return (
    <div class="lines short" tabIndex={0} role="region" aria-label="differences">
      {props.lines.map((line, index) => (
        <div class="line columns-1" key={index}>
          <code class={line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "same"}>{line}</code>
        </div>
      ))}
    </div>
  );
}

function toneOf(standing: string): "good" | "bad" | "warn" | "plain" {
  if (standing === "unaffected") return "good";
  if (standing === "unknown") return "plain";
  return standing === "warned" ? "warn" : "bad";
}
