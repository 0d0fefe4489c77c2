/** Every CRD with the life of its versions, live. */
import { useCallback, useMemo, useRef } from "preact/hooks";
import { json } from "../../api/client";
import { type Overview, overviewPath } from "../../api/console";
import { measured, type Order, ORDERS, requestsOf, shownGroups } from "../../logic/overview";
import { plural } from "../../logic/moments";
import { CRDS } from "../../logic/paths";
import { Choice, Empty, Loading, ProblemNote } from "../../ui/bits";
import { Page } from "../../ui/page";
import { Notes } from "../../ui/notes";
import { useEvery, useRead } from "../../ui/resource";
import { choose, route } from "../../ui/router";
import { LiveMark } from "../../ui/live";
import { useRoving } from "../../ui/roving";
import { CrdLine } from "./line";
import { useChanges } from "../../ui/changes";

export function Home() {
  const read = useRead<Overview>("overview", (signal) => json<Overview>(overviewPath(), { signal }));
  const state = useChanges(CRDS, read.reload);
  useEvery(10, read.reload);
  const search = route.value.query.get("q") ?? "";
  const order = ORDERS.find(({ value }) => value === route.value.query.get("sort"))?.value ?? "name";
  const overview = read.value;
  const groups = useMemo(() => shownGroups(overview?.crds ?? [], search, order), [overview, search, order]);
  const most = useMemo(() => mostOf(overview), [overview]);
  const list = useRef<HTMLDivElement>(null);
  useRoving(list, "a.crd-name");
  const typed = useCallback((event: { currentTarget: HTMLInputElement }) => choose({ q: event.currentTarget.value }, true), []);
  const counted = overview?.crds.some((crd) => requestsOf(crd) !== null);
  const found = groups.reduce((number, group) => number + group.crds.length, 0);
  return (
    <Page
      title="Custom resources"
      twins={[
        { text: "overview", href: overviewPath() },
        { text: "the CRDs themselves", href: CRDS },
      ]}
      actions={<LiveMark state={state} />}
    >
      <div class="toolbar">
        <input
          type="search"
          data-search
          aria-label="search CRDs"
          placeholder="Search by name, kind, group, version   ( / )"
          value={search}
          onInput={typed}
        />
        <span class="hint sort-by" aria-hidden="true">
          Sort by
        </span>
        <Choice<Order> label="sort by" options={measured(ORDERS, overview?.crds ?? [])} value={order} onChoose={(value) => choose({ sort: value === "name" ? undefined : value })} />
        {overview && <span class="hint">{found === overview.crds.length ? plural(found, "CRD") : `${found} of ${plural(overview.crds.length, "CRD")}`}</span>}
      </div>
      {read.problem && <ProblemNote problem={read.problem} retry={read.reload} />}
      {!overview && read.loading && <Loading what="the CRDs" />}
      {overview && <Notes unknown={overview.unknown} />}
      {overview?.crds.length === 0 && (
        <Empty>
          No CRD is here yet. <code>kubectl apply -f crd.yaml</code> makes one; it will show up by itself.
        </Empty>
      )}
      {overview && overview.crds.length > 0 && found === 0 && <Empty>No CRD matches “{search}”.</Empty>}
      <div ref={list}>
        {groups.map(({ group, crds }) => (
          <section key={group} class="group" aria-label={group}>
            <h2>
              {group} <span class="hint">{crds.length}</span>
            </h2>
            <div class="crd crd-head hint" aria-hidden="true">
              <span>CRD</span>
              <span>Versions</span>
              <span>Stored objects</span>
              <span>{counted && "Requests, last day"}</span>
            </div>
            <ul class="crds">
              {crds.map((crd) => (
                <CrdLine key={crd.name} crd={crd} most={most} />
              ))}
            </ul>
          </section>
        ))}
      </div>
    </Page>
  );
}

function mostOf(overview: Overview | undefined): number {
  let most = 0;
  for (const crd of overview?.crds ?? []) for (const version of crd.versions) most = Math.max(most, version.stored ?? 0);
  return most;
}
