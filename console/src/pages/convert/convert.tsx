/** An object at each version through the server's real conversion; and the laws of `instar check`. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { json } from "../../api/client";
import { type Problem, problemFrom } from "../../api/problem";
import { CONVERT, type Converted } from "../../api/tools";
import { align } from "../../logic/align";
import { isMap, textAt } from "../../logic/json";
import { milliseconds } from "../../logic/moments";
import { LONGEST_LINK, packed, unpacked } from "../../logic/permalink";
import { byAge } from "../../logic/versions";
import { Badge, Copy, Loading, ProblemNote } from "../../ui/bits";
import { Page } from "../../ui/page";
import { route, setFragment } from "../../ui/router";
import { SideBySide } from "../../ui/sidebyside";
import { TextDrop } from "../../ui/textdrop";
import { Check } from "./check";

export function Convert() {
  const [text, setText] = useState("");
  const [answer, setAnswer] = useState<Converted>();
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const run = async (what: string) => {
    setBusy(true);
    setProblem(undefined);
    try {
      setAnswer(await json<Converted>(CONVERT, { method: "POST", body: { text: what } }));
      const link = await packed({ text: what });
      setFragment(link.length > LONGEST_LINK ? "" : link);
    } catch (error) {
      setAnswer(undefined);
      setProblem(problemFrom(error));
    } finally {
      setBusy(false);
    }
  };
  useEffect(() => {
    void unpacked(route.peek().fragment).then((found) => {
      const linked = isMap(found) ? textAt(found, "text") : "";
      if (linked === "") return;
      setText(linked);
      void run(linked);
    });
  }, []);
  return (
    <Page title="Convert" twins={[{ text: "the laws", href: "/console/api/laws" }]}>
      <section class="card" aria-label="an object">
        <h2>An object at each version</h2>
        <TextDrop main label="The object, as YAML or JSON" value={text} onText={setText} placeholder={"apiVersion: example.com/v1\nkind: Widget\n…"} />
        <div class="toolbar">
          <button type="button" class="main" disabled={busy || text.trim() === ""} onClick={() => void run(text)}>
            Convert
          </button>
          <span class="hint">Nothing is stored.</span>
          {answer && <Copy label="Copy link" text={() => location.href} />}
        </div>
        {busy && <Loading what="it at each version" />}
        {problem && <ProblemNote problem={problem} />}
        {answer && !busy && <Answer answer={answer} />}
      </section>
      <Check />
    </Page>
  );
}

function Answer(props: { answer: Converted }) {
  const { answer } = props;
  const versions = useMemo(() => [...answer.versions].sort((left, right) => byAge(left.version, right.version)), [answer]);
  const shown = versions.filter((one) => one.object !== null);
  const rows = useMemo(() => align(shown.map((one) => one.object ?? undefined)), [shown]);
  const columns = shown.map((one) => ({
    id: one.version,
    head: (
      <>
        <strong>{one.version}</strong> {one.version === answer.from && <Badge tone="info">as given</Badge>} {one.storage && <Badge>storage version</Badge>}{" "}
        {one.version !== answer.from && one.seconds !== null && <span class="hint">{milliseconds(one.seconds)}</span>}
      </>
    ),
  }));
  return (
    <>
      <p class="hint">
        {answer.crd}, converted by {answer.by}
      </p>
      <Reasons title={`The server would refuse it at ${answer.from}`} reasons={answer.refusals} tone="problem" />
      <Reasons title="Fields the schema does not know are dropped" reasons={answer.pruned} tone="note" />
      {answer.roundTrip && <Reasons title={`There (${answer.roundTrip.through}) and back, this is lost`} reasons={answer.roundTrip.differences} tone="problem" />}
      {versions
        .filter((one) => one.error !== null)
        .map((one) => (
          <div key={one.version} class="problem" role="alert">
            <strong>It cannot be converted to {one.version}</strong>
            <p>{one.error?.message}</p>
          </div>
        ))}
      {shown.length > 0 && <SideBySide label="the object at each version" columns={columns} rows={rows} reference={0} />}
    </>
  );
}

function Reasons(props: { title: string; reasons: string[]; tone: string }) {
  if (props.reasons.length === 0) return null;
  return (
    <div class={props.tone}>
      <strong>{props.title}</strong>
      <ul>
        {props.reasons.slice(0, 50).map((reason, index) => (
          <li key={index}>{reason}</li>
        ))}
      </ul>
    </div>
  );
}
