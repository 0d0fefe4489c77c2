/** A review's report: what breaks, for whom, and the way that breaks nothing. */
import { useMemo } from "preact/hooks";
import { json } from "../../api/client";
import { type Finding, RULES, type ReviewReport, type ReviewedCrd, type RuleText } from "../../api/tools";
import { plural } from "../../logic/moments";
import { Badge, Copy, Empty } from "../../ui/bits";
import { useRead } from "../../ui/resource";
import { WitnessView } from "./witness";

const TONES = { error: "bad", warning: "warn", info: "info" } as const;

export function Report(props: { report: ReviewReport }) {
  const { report } = props;
  const rules = useRead<{ rules: RuleText[] }>("rules", (signal) => json<{ rules: RuleText[] }>(RULES, { signal }));
  const known = useMemo(() => new Map(rules.value?.rules.map((rule) => [rule.id, rule])), [rules.value]);
  const { error, warning, info } = report.summary;
  return (
    <section aria-label="report" aria-live="polite">
      <p class="verdicts">
        {error + warning + info === 0 && <Badge tone="good">nothing breaks</Badge>} {error > 0 && <Badge tone="bad">{plural(error, "error")}</Badge>} {warning > 0 && <Badge tone="warn">{plural(warning, "warning")}</Badge>} {info > 0 && <Badge>{plural(info, "note")}</Badge>}
      </p>
      {report.problems.length > 0 && (
        <div class="problem" role="alert">
          <strong>Not everything could be read</strong>
          {report.problems.map((problem, index) => (
            <p key={index}>{typeof problem === "string" ? problem : JSON.stringify(problem)}</p>
          ))}
        </div>
      )}
      {report.onlyOld.length > 0 && <p>Only before: {report.onlyOld.join(", ")}</p>}
      {report.onlyNew.length > 0 && <p>Only after: {report.onlyNew.join(", ")}</p>}
      {report.crds.map((crd) => (
        <OneCrd key={crd.name} crd={crd} rules={known} />
      ))}
    </section>
  );
}

function OneCrd(props: { crd: ReviewedCrd; rules: Map<string, RuleText> }) {
  const { crd, rules } = props;
  return (
    <section class="card" aria-label={crd.name}>
      <h2>{crd.name}</h2>
      {crd.findings.length === 0 && <Empty>Nothing breaks.</Empty>}
      <ul class="findings">
        {crd.findings.map((finding) => (
          <FindingLine key={finding.fingerprint} finding={finding} rule={rules.get(finding.rule)} />
        ))}
      </ul>
      {crd.plan.length > 0 && (
        <>
          <h3>Plan without breakage</h3>
          <Plan crd={crd} />
        </>
      )}
      {crd.checklist.length > 0 && (
        <details>
          <summary>Checklist</summary>
          <ul class="conditions">
            {crd.checklist.map((line) => (
              <li key={line.question}>
                <Badge tone={line.answer ? "good" : "bad"}>{line.answer ? "yes" : "no"}</Badge> {line.question} <span class="hint">{line.evidence}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

function FindingLine(props: { finding: Finding; rule: RuleText | undefined }) {
  const { finding, rule } = props;
  return (
    <li id={finding.fingerprint}>
      <details open={finding.severity === "error"}>
        <summary>
          <Badge tone={TONES[finding.severity]}>{finding.severity}</Badge> <code>{finding.path === "" ? finding.version : `${finding.version} ${finding.path}`}</code> {finding.message}
        </summary>
        <p class="hint">
          Affects {finding.hits.join(", ") || "no client"}. Rule <strong>{finding.rule}</strong>
          {rule && <>: {rule.summary}</>}
        </p>
        {rule && rule.advice !== "" && <p class="advice">{rule.advice}</p>}
        {finding.details && <p class="hint">{finding.details}</p>}
        {finding.witness && <WitnessView witness={finding.witness} />}
        {finding.unwitnessed && <p class="hint">No object shows it: {finding.unwitnessed}</p>}
      </details>
    </li>
  );
}

function Plan(props: { crd: ReviewedCrd }) {
  return (
    <ol class="plan">
      {props.crd.plan.map((step, index) => (
        <li key={index}>
          <div>
            <Badge tone="info">release {step.release}</Badge> <strong>{step.title}</strong>
          </div>
          {step.why !== "" && <p>{step.why}</p>}
          {step.preconditions.map((condition) => (
            <p key={condition} class="hint">
              First: {condition}
            </p>
          ))}
          {step.commands.map((command) => (
            <p key={command}>
              <code>{command}</code> <Copy text={() => command} />
            </p>
          ))}
          {step.rollback !== "" && <p class="hint">Way back: {step.rollback}</p>}
        </li>
      ))}
    </ol>
  );
}
