/** A rehearsal of an upgrade: the command that makes one of this cluster, and the report it wrote. */
import { useMemo, useState } from "preact/hooks";
import { type RehearsalReport, readReport } from "../../api/rehearsal";
import { session } from "../../api/session";
import { Copy } from "../../ui/bits";
import { Page } from "../../ui/page";
import { TextDrop } from "../../ui/textdrop";
import { RehearsalView } from "./report";

export function RehearsalPage() {
  const [text, setText] = useState("");
  const read = useMemo(() => reading(text), [text]);
  return (
    <Page title="Rehearse an upgrade">
      <p class="subtitle">A rehearsal tries the new CRDs on a copy of this cluster, step by step. The cluster itself is only read.</p>
      <section class="card" aria-label="run a rehearsal">
        <h2>Run it</h2>
        <p>
          <code>{command()}</code> <Copy text={command} />
        </p>
      </section>
      <section class="card" aria-label="open a report">
        <h2>Open its report</h2>
        <details open={!read.report}>
          <summary>{read.report ? "Open another report" : "The file that the command wrote"}</summary>
          <TextDrop main label="report.json" placeholder="Paste the report, or choose the file." rows={8} value={text} onText={setText} />
        </details>
        {read.problem !== "" && (
          <div class="problem" role="alert">
            {read.problem}
          </div>
        )}
      </section>
      {read.report && <RehearsalView report={read.report} />}
    </Page>
  );
}

function command(): string {
  const context = session.value?.server.context;
  return `instar rehearse --from kube: --to new-crds/${context ? ` --context ${context}` : ""} -o json=report.json`;
}

function reading(text: string): { report?: RehearsalReport; problem: string } {
  if (text.trim() === "") return { problem: "" };
  try {
    return { report: readReport(text), problem: "" };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}
