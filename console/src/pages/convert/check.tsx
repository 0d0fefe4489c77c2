/** The laws every conversion must keep, tried with objects made from the CRD's schemas. */
import { useMemo, useState } from "preact/hooks";
import { json } from "../../api/client";
import { type Problem, problemFrom } from "../../api/problem";
import { CHECK, type CheckReport, type Counterexample, type LawCheck } from "../../api/tools";
import { align } from "../../logic/align";
import { count } from "../../logic/moments";
import { Badge, Loading, ProblemNote } from "../../ui/bits";
import { CrdSelect } from "../../ui/crdselect";
import { choose, route } from "../../ui/router";
import { SideBySide } from "../../ui/sidebyside";

const TONES = { kept: "good", broken: "bad", unchecked: "warn" } as const;

export function Check() {
  const crd = route.value.query.get("crd") ?? "";
  const [examples, setExamples] = useState(50);
  const [report, setReport] = useState<CheckReport>();
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    setProblem(undefined);
    try {
      setReport(await json<CheckReport>(CHECK, { method: "POST", body: { crd, examples, laws: [], versions: [], seed: null, seconds: 20 } }));
    } catch (error) {
      setReport(undefined);
      setProblem(problemFrom(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <section class="card" aria-label="laws">
      <h2>Check the conversion</h2>
      <p class="hint">Objects generated from the schemas are converted to each version and back by the CRD's own converter, and compared. The smallest object that breaks a law is shown.</p>
      <div class="toolbar">
        <CrdSelect value={crd} onChoose={(name) => choose({ crd: name })} />
        <label class="pick">
          Objects for each law
          <input type="number" min={1} max={1000} value={examples} onInput={(event) => setExamples(Math.max(1, Number(event.currentTarget.value) || 1))} />
        </label>
        <button type="button" class="main" disabled={busy || crd === ""} onClick={() => void run()}>
          Check
        </button>
      </div>
      {busy && <Loading what="conversions; this takes up to 20 seconds" />}
      {problem && <ProblemNote problem={problem} />}
      {report && !busy && <CheckResult report={report} />}
    </section>
  );
}

function CheckResult(props: { report: CheckReport }) {
  const { report } = props;
  const broken = report.checks.filter((check) => check.verdict === "broken");
  const kept = report.checks.filter((check) => check.verdict === "kept").length;
  return (
    <div aria-live="polite">
      <p>
        <Badge tone={broken.length > 0 ? "bad" : "good"}>{count(broken.length)} broken</Badge> <Badge tone="good">{count(kept)} kept</Badge>{" "}
        <span class="hint">
          {report.converter}, seed {report.seed}
          {report.complete ? "" : "; the time was up before all were tried"}
        </span>
      </p>
      <ul class="findings">
        {broken.map((check) => (
          <Broken key={`${check.law} ${check.from} ${check.to}`} check={check} />
        ))}
      </ul>
      <details>
        <summary>All laws</summary>
        <div class="scrolls" tabIndex={0} role="region" aria-label="all laws">
          <table>
            <thead>
              <tr>
                <th scope="col">Law</th>
                <th scope="col">From</th>
                <th scope="col">To</th>
                <th scope="col">Verdict</th>
                <th scope="col" class="right">
                  Objects
                </th>
              </tr>
            </thead>
            <tbody>
              {report.checks.map((check) => (
                <tr key={`${check.law} ${check.from} ${check.to}`}>
                  <td>
                    <strong>{check.law}</strong> <span class="hint">{check.title}</span> {check.note}
                  </td>
                  <td>{check.from}</td>
                  <td>{check.to}</td>
                  <td>
                    <Badge tone={TONES[check.verdict]}>{check.verdict}</Badge>
                  </td>
                  <td class="right">{count(check.objects)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </div>
  );
}

function Broken(props: { check: LawCheck }) {
  const { check } = props;
  return (
    <li>
      <Badge tone="bad">{check.law}</Badge> {check.title}:{" "}
      <strong>
        {check.from} → {check.to}
      </strong>
      {check.counterexample && <ThreeWay example={check.counterexample} />}
    </li>
  );
}

/** The object, what it became, and what came back. */
function ThreeWay(props: { example: Counterexample }) {
  const { message, steps } = props.example;
  const rows = useMemo(() => align(steps.map((step) => step.value)), [steps]);
  return (
    <>
      <p>{message}</p>
      <SideBySide label="counterexample" rows={rows} reference={0} columns={steps.map((step, index) => ({ id: String(index), head: <strong>{step.caption}</strong> }))} />
    </>
  );
}
