/** Which CRDs have objects at old versions; and one migration at work. */
import type { PageProps } from "../../app";
import { json } from "../../api/client";
import { type Overview, type OverviewCrd, overviewPath } from "../../api/console";
import { behindOf } from "../../logic/overview";
import { count } from "../../logic/moments";
import { pagePath } from "../../logic/paths";
import { Badge, Bar, Empty, Loading, ProblemNote } from "../../ui/bits";
import { Page } from "../../ui/page";
import { useEvery, useRead } from "../../ui/resource";
import { OneMigration } from "./one";

export function Migrations(props: PageProps) {
  const name = props.parts[0];
  return name === undefined ? <AllMigrations /> : <OneMigration crd={name} />;
}

function AllMigrations() {
  const read = useRead<Overview>("overview", (signal) => json<Overview>(overviewPath(), { signal }));
  useEvery(5, read.reload);
  const crds = read.value?.crds ?? [];
  const due = crds.filter(isDue);
  return (
    <Page title="Migrations" twins={[{ text: "overview", href: overviewPath() }, { text: "StorageVersionMigrations", href: "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations" }]}>
      {read.problem && <ProblemNote problem={read.problem} retry={read.reload} />}
      {!read.value && read.loading && <Loading what="the CRDs" />}
      {read.value && due.length === 0 && <Empty>Nothing to migrate: no CRD has stored versions besides its storage version.</Empty>}
      <List crds={due} />
      {crds.length > due.length && (
        <details>
          <summary>CRDs with nothing to migrate ({count(crds.length - due.length)})</summary>
          <List crds={crds.filter((crd) => !isDue(crd))} />
        </details>
      )}
    </Page>
  );
}

function isDue(crd: OverviewCrd): boolean {
  return crd.migrating || (behindOf(crd) ?? 0) > 0 || crd.storedVersions.some((version) => version !== crd.storageVersion);
}

function List(props: { crds: OverviewCrd[] }) {
  return (
    <ul class="crds">
      {props.crds.map((crd) => {
        const behind = behindOf(crd);
        return (
          <li key={crd.name} class="crd">
            <div class="what">
              <a class="crd-name" href={pagePath("migrations", crd.name)}>
                {crd.kind}
              </a>
              <span class="hint">{crd.name}</span>
              {crd.migrating && <Badge tone="info">migrating</Badge>}
            </div>
            <div class="hint">
              stored versions: {crd.storedVersions.join(", ")}; storage version: {crd.storageVersion}
            </div>
            {behind !== null && crd.total !== null && <Bar value={crd.total - behind} most={crd.total} label="objects at the storage version" />}
            <div>{behind === null ? "" : behind === 0 ? "nothing left" : `${count(behind)} left`}</div>
          </li>
        );
      })}
    </ul>
  );
}
