/** Next steps of a version: a button for each; a step that is blocked is disabled, with the reasons below it. */
import { useState } from "preact/hooks";
import { json } from "../../api/client";
import { type LifecycleVersion, type NextStep, stepPath } from "../../api/console";
import { type Problem, problemFrom } from "../../api/problem";
import { useRight } from "../../api/rights";
import { Copy, Empty, ProblemNote } from "../../ui/bits";
import { Dialog } from "../../ui/dialog";

const TEXTS: Record<string, string> = {
  serve: "Serve it",
  deprecate: "Deprecate it",
  storage: "Store new objects at it",
  unserve: "Stop serving it",
  remove: "Remove it",
};

export function Steps(props: { crd: string; version: LifecycleVersion; reload: () => void }) {
  const { version } = props;
  const may = useRight({ verb: "update", group: "apiextensions.k8s.io", resource: "customresourcedefinitions", name: props.crd });
  if (version.next.length === 0) return <Empty>None.</Empty>;
  return (
    <ul class="steps">
      {version.next.map((step) => (
        <Step key={step.step} crd={props.crd} version={version.name} step={step} may={may === true} reload={props.reload} />
      ))}
    </ul>
  );
}

function Step(props: { crd: string; version: string; step: NextStep; may: boolean; reload: () => void }) {
  const { step, may } = props;
  const [asked, setAsked] = useState(false);
  const free = step.blockedBy.length === 0;
  const text = TEXTS[step.step] ?? step.step;
  return (
    <li class={free ? "free" : "blocked"}>
      <div>
        {may ? (
          <button type="button" disabled={!free} onClick={() => setAsked(true)}>
            {text} {free && "… "}
            <span class="unseen">{props.version}</span>
          </button>
        ) : (
          <strong>{text}</strong>
        )}
        {free && <Copy text={() => step.command} label="Copy command" />}
      </div>
      {free ? <p class="hint">{step.why}</p> : <Blockers reasons={step.blockedBy} />}
      <ConfirmStep {...props} open={asked} text={text} close={() => setAsked(false)} />
    </li>
  );
}

function Blockers(props: { reasons: string[] }) {
  return (
    <ul class="blockers">
      {props.reasons.map((reason) => (
        <li key={reason}>{reason}</li>
      ))}
    </ul>
  );
}

function ConfirmStep(props: { crd: string; version: string; step: NextStep; text: string; open: boolean; close: () => void; reload: () => void }) {
  const [problem, setProblem] = useState<Problem>();
  const [warning, setWarning] = useState("");
  const [busy, setBusy] = useState(false);
  const { step, crd, version, close, reload } = props;
  const act = async () => {
    setBusy(true);
    try {
      await json(stepPath(crd, version, step.step), { method: "POST", body: { dryRun: false, warning } });
      close();
      reload();
    } catch (error) {
      setProblem(problemFrom(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog open={props.open} label={props.text} onClose={close}>
      <h2>
        {props.text}: {version}
      </h2>
      <p>
        This changes <code>{crd}</code> on the server. {step.why}
      </p>
      <p>
        The same by command: <code>{step.command}</code>
      </p>
      {step.step === "deprecate" && (
        <label>
          What clients are told (may be empty)
          <input value={warning} onInput={(event) => setWarning(event.currentTarget.value)} />
        </label>
      )}
      {problem && <ProblemNote problem={problem} what="It was not done" />}
      <div class="buttons">
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button type="button" class="main" disabled={busy} onClick={() => void act()}>
          {props.text}
        </button>
      </div>
    </Dialog>
  );
}
