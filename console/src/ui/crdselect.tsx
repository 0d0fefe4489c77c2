/** One of the server's CRDs. */
import { json } from "../api/client";
import { type Overview, overviewPath } from "../api/console";
import { ProblemNote } from "./bits";
import { useRead } from "./resource";

export function CrdSelect(props: { value: string; label?: string; onChoose: (name: string) => void }) {
  const read = useRead<Overview>("overview", (signal) => json<Overview>(overviewPath(), { signal }));
  if (read.problem) return <ProblemNote problem={read.problem} retry={read.reload} />;
  const names = (read.value?.crds ?? []).map((crd) => crd.name).sort();
  if (props.value !== "" && !names.includes(props.value)) names.unshift(props.value);
  return (
    <label class="pick">
      {props.label ?? "CRD"}
      <select value={props.value} onChange={(event) => props.onChoose(event.currentTarget.value)}>
        <option value="">choose …</option>
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
