/** One CRD in Home. */
import type { OverviewCrd } from "../../api/console";
import { ago, brief, count } from "../../logic/moments";
import { behindOf, requestsOf } from "../../logic/overview";
import { pagePath } from "../../logic/paths";
import { byAge } from "../../logic/versions";
import { Badge, Bar } from "../../ui/bits";
import { Timeline } from "../../ui/timeline";

export function CrdLine(props: { crd: OverviewCrd; most: number }) {
  const { crd, most } = props;
  const requests = requestsOf(crd);
  const failures = crd.conversion.failures;
  return (
    <li class="crd">
      <div class="what">
        <a class="crd-name" href={pagePath("crds", crd.name)}>
          {crd.kind}
        </a>
        <span class="hint">{crd.name}</span>
        <Badges crd={crd} />
      </div>
      <Timeline versions={crd.versions} />
      <div class="counts">
        {[...crd.versions]
          .sort((left, right) => byAge(left.name, right.name))
          .filter((version) => version.stored !== null && (version.stored > 0 || version.storage))
          .map((version) => (
            <div key={version.name}>
              <span class="hint">{version.name}</span>
              <Bar value={version.stored ?? 0} most={most} label={`objects stored at ${version.name}`} tone={version.storage ? "" : "behind"} />
            </div>
          ))}
        <a href={pagePath("objects", crd.name)} class="hint">
          {crd.total === null ? "objects" : crd.total === 1 ? "1 object" : `${count(crd.total)} objects`}
        </a>
      </div>
      <dl class="numbers">
        {requests !== null && (
          <div class="requests">
            <dt>requests, last day</dt>
            <dd>{brief(requests)}</dd>
          </div>
        )}
        {failures !== null && failures > 0 && (
          <div class="bad">
            <dt>failed conversions</dt>
            <dd title={crd.conversion.lastFailure ? `the last one ${ago(crd.conversion.lastFailure, Date.now())}` : undefined}>{brief(failures)}</dd>
          </div>
        )}
      </dl>
    </li>
  );
}

function Badges(props: { crd: OverviewCrd }) {
  const { crd } = props;
  const behind = behindOf(crd);
  return (
    <>
      {!crd.established && <Badge tone="bad">not established</Badge>}
      {crd.deleting && <Badge tone="warn">being deleted</Badge>}
      {crd.migrating && <Badge tone="info">migrating</Badge>}
      {behind !== null && behind > 0 && !crd.migrating && <Badge tone="warn">{brief(behind)} not migrated</Badge>}
      {crd.problems.length > 0 && (
        <Badge tone="bad" title={crd.problems.join("\n")}>
          {crd.problems[0]?.split(":")[0]}
        </Badge>
      )}
    </>
  );
}
