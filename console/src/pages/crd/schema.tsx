/** The schemas of two versions side by side. */
import { useMemo } from "preact/hooks";
import type { Crd } from "../../logic/crd";
import { alignSchemas } from "../../logic/schemas";
import { byAge } from "../../logic/versions";
import { Empty } from "../../ui/bits";
import { choose, route } from "../../ui/router";
import { SideBySide } from "../../ui/sidebyside";

export function SchemaDiff(props: { crd: Crd }) {
  const { crd } = props;
  const names = crd.versions.map((version) => version.name).sort(byAge);
  const { query } = route.value;
  const chosen = (key: string, otherwise: string | undefined) => {
    const asked = query.get(key);
    return asked !== null && names.includes(asked) ? asked : (otherwise ?? "");
  };
  const newest = chosen("b", names.at(-1));
  const oldest = chosen("a", names.at(-2) ?? names.at(-1));
  const rows = useMemo(() => {
    const schema = (name: string) => crd.versions.find((version) => version.name === name)?.schema;
    return oldest === newest ? alignSchemas([schema(newest)]) : alignSchemas([schema(oldest), schema(newest)]);
  }, [crd, oldest, newest]);
  const pick = (key: "a" | "b", value: string, label: string) => (
    <label class="pick">
      <span class="unseen">{label}</span>
      <select value={value} onChange={(event) => choose({ [key]: event.currentTarget.value })}>
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
  const columns = [
    { id: "a", head: pick("a", oldest, "first version") },
    { id: "b", head: pick("b", newest, "second version") },
  ];
  if (rows.length === 0) return <Empty>These versions say nothing about their fields.</Empty>;
  return (
    <SideBySide
      key={`${oldest} ${newest}`}
      label={`schema of ${oldest} and ${newest}`}
      columns={oldest === newest ? columns.slice(0, 1) : columns}
      rows={rows}
      reference={0}
      tools={oldest === newest ? columns[1]?.head : undefined}
    />
  );
}
