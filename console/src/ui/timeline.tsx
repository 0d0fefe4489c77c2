/** A CRD's versions in the order of their age: what each is, in a mark and in words. */
import { byAge } from "../logic/versions";

export interface TimelineVersion {
  name: string;
  served: boolean;
  storage: boolean;
  deprecated: boolean;
}

export function describeVersion(version: TimelineVersion): string {
  const said = [version.served ? "served" : "not served"];
  if (version.storage) said.push("storage version");
  if (version.deprecated) said.push("deprecated");
  return said.join(", ");
}

export function Timeline(props: { versions: TimelineVersion[] }) {
  const versions = [...props.versions].sort((left, right) => byAge(left.name, right.name));
  return (
    <ol class="timeline">
      {versions.map((version) => {
        const state = [version.served ? "served" : "unserved", version.storage ? "storage" : "", version.deprecated ? "deprecated" : ""];
        return (
          <li key={version.name} class={state.join(" ")} title={`${version.name}: ${describeVersion(version)}`}>
            <span class="dot" aria-hidden="true" />
            <span class="name">{version.name}</span>
            <span class="unseen">{describeVersion(version)}</span>
          </li>
        );
      })}
    </ol>
  );
}
