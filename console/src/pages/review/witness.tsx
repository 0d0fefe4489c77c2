/** An object that shows a finding to be true: what the old CRD did with it, and what the new one does. */
import { useMemo } from "preact/hooks";
import type { Witness } from "../../api/tools";
import { type Verdict, witnessRows } from "../../logic/witness";
import { Badge } from "../../ui/bits";
import { SideBySide } from "../../ui/sidebyside";

export function WitnessView(props: { witness: Witness }) {
  const { witness } = props;
  const rows = useMemo(() => witnessRows(witness), [witness]);
  return (
    <SideBySide
      label={`an object that is ${witness.effect}`}
      rows={rows}
      reference={0}
      columns={[
        { id: "old", head: <Head text="before" verdict={witness.old} /> },
        { id: "new", head: <Head text="after" verdict={witness.new} /> },
      ]}
    />
  );
}

function Head(props: { text: string; verdict: Verdict }) {
  const { accepted, pruned } = props.verdict;
  return (
    <>
      <strong>{props.text}</strong> <Badge tone={accepted ? "good" : "bad"}>{accepted ? "accepted" : "refused"}</Badge>{" "}
      {pruned.length > 0 && <Badge tone="warn">{pruned.length === 1 ? "a field is dropped" : `${pruned.length} fields are dropped`}</Badge>}
    </>
  );
}
