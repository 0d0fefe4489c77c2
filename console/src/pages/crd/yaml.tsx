/** The CRD itself. */
import { useMemo } from "preact/hooks";
import { lines, yamlText } from "../../logic/align";
import type { Crd } from "../../logic/crd";
import { Copy } from "../../ui/bits";
import { SideBySide } from "../../ui/sidebyside";

export function YamlTab(props: { crd: Crd }) {
  const { raw, name } = props.crd;
  const rows = useMemo(() => lines(raw), [raw]);
  return (
    <SideBySide label={`YAML of ${name}`} columns={[{ id: "yaml", head: name }]} rows={rows} reference={0} tools={<Copy text={() => yamlText(raw)} />} />
  );
}
