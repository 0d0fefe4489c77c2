/** What a change of a CRD breaks: two files, or a CRD of this server and a file. */
import { useEffect, useState } from "preact/hooks";
import { json, send } from "../../api/client";
import { type Problem, problemFrom } from "../../api/problem";
import { REVIEW, RULES, type ReviewReport, type Side } from "../../api/tools";
import { isMap, textAt } from "../../logic/json";
import { LONGEST_LINK, packed, unpacked } from "../../logic/permalink";
import { CrdSelect } from "../../ui/crdselect";
import { Choice, Copy, Loading, ProblemNote } from "../../ui/bits";
import { save } from "../../ui/save";
import { Page } from "../../ui/page";
import { route, setFragment } from "../../ui/router";
import { TextDrop } from "../../ui/textdrop";
import { Report } from "./report";

interface Asked {
  from: "cluster" | "file";
  crd: string;
  old: string;
  new: string;
}

const EXAMPLE = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n…";
const KINDS = [
  { value: "cluster", text: "A CRD of this server" },
  { value: "file", text: "A file" },
] as const;

export function Review() {
  const [asked, setAsked] = useState<Asked>(() => ({ from: route.value.query.get("crd") === null ? "file" : "cluster", crd: route.value.query.get("crd") ?? "", old: "", new: "" }));
  const [report, setReport] = useState<ReviewReport>();
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const run = async (what: Asked) => {
    setBusy(true);
    setProblem(undefined);
    try {
      setReport(await json<ReviewReport>(REVIEW, { method: "POST", body: bodyOf(what) }));
      const link = await packed(what);
      setFragment(link.length > LONGEST_LINK ? "" : link);
    } catch (error) {
      setReport(undefined);
      setProblem(problemFrom(error));
    } finally {
      setBusy(false);
    }
  };
  useEffect(() => {
    void unpacked(route.peek().fragment).then((found) => {
      if (!isMap(found)) return;
      const linked: Asked = { from: found.from === "cluster" ? "cluster" : "file", crd: textAt(found, "crd"), old: textAt(found, "old"), new: textAt(found, "new") };
      setAsked(linked);
      void run(linked);
    });
  }, []);
  const ready = asked.new.trim() !== "" && (asked.from === "cluster" ? asked.crd !== "" : asked.old.trim() !== "");
  return (
    <Page title="Review a change" twins={[{ text: "the rules", href: RULES }]}>
      <div class="pair">
        <section class="card" aria-label="before">
          <div class="card-head">
            <h2>Before</h2>
            <Choice label="where the old CRD is" options={KINDS} value={asked.from} onChoose={(from) => setAsked({ ...asked, from })} />
          </div>
          {asked.from === "cluster" ? (
            <CrdSelect value={asked.crd} onChoose={(crd) => setAsked({ ...asked, crd })} />
          ) : (
            <TextDrop label="The CRD as it is" placeholder={EXAMPLE} value={asked.old} onText={(text) => setAsked({ ...asked, old: text })} />
          )}
        </section>
        <section class="card" aria-label="after">
          <div class="card-head">
            <h2>After</h2>
          </div>
          <TextDrop main label="The CRD as it will be" placeholder={EXAMPLE} value={asked.new} onText={(text) => setAsked({ ...asked, new: text })} />
        </section>
      </div>
      <div class="toolbar">
        <button type="button" class="main" disabled={!ready || busy} onClick={() => void run(asked)}>
          Review
        </button>
        {report && (
          <>
            <Copy label="Copy link" text={() => location.href} />
            <Export asked={asked} onProblem={setProblem} />
            {route.value.fragment === "" && <span class="hint">These files are too long for a link.</span>}
          </>
        )}
      </div>
      {busy && <Loading what="the change, and looking for objects that show what breaks" />}
      {problem && <ProblemNote problem={problem} />}
      {report && !busy && <Report report={report} />}
    </Page>
  );
}

function bodyOf(asked: Asked): { old: Side; new: Side; witnesses: boolean } {
  return { old: asked.from === "cluster" ? { crd: asked.crd } : { text: asked.old }, new: { text: asked.new }, witnesses: true };
}

function Export(props: { asked: Asked; onProblem: (problem: Problem) => void }) {
  const take = async (form: "html" | "markdown", name: string) => {
    try {
      const response = await send(`${REVIEW}?form=${form}`, { method: "POST", body: bodyOf(props.asked), accept: "*/*" });
      save(await response.blob(), name);
    } catch (error) {
      props.onProblem(problemFrom(error));
    }
  };
  return (
    <>
      <button type="button" class="quiet" onClick={() => void take("html", "review.html")}>
        Save as HTML
      </button>
      <button type="button" class="quiet" onClick={() => void take("markdown", "review.md")}>
        Save as Markdown
      </button>
    </>
  );
}
