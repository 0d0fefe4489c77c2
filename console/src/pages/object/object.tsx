/** One object at every version, side by side. */
import { useCallback, useMemo } from "preact/hooks";
import { NoSuchPage, type PageProps } from "../../app";
import { json } from "../../api/client";
import { type EveryVersion, everyVersionPath } from "../../api/console";
import { align, yamlText } from "../../logic/align";
import { textAt } from "../../logic/json";
import { count, plural } from "../../logic/moments";
import { collectionPath, namesOf, objectPath, pagePath, withQuery } from "../../logic/paths";
import { type Owner, ownersOf } from "../../logic/owners";
import { byAge } from "../../logic/versions";
import { Badge, Copy, Loading, ProblemNote } from "../../ui/bits";
import { useChanges } from "../../ui/changes";
import { useKey } from "../../ui/keys";
import { LiveMark } from "../../ui/live";
import { Page } from "../../ui/page";
import { useRead } from "../../ui/resource";
import { choose, route } from "../../ui/router";
import { type SideColumn, SideBySide } from "../../ui/sidebyside";
import { History, useHistory } from "./history";
import { withoutNoise } from "./noise";

export function ObjectPage(props: PageProps) {
  const [crd, namespace, name] = props.parts;
  if (crd === undefined || namespace === undefined || name === undefined) return <NoSuchPage path={route.value.path} />;
  return <OneObject crd={crd} namespace={namespace === "_" ? "" : namespace} name={name} />;
}

function OneObject(props: { crd: string; namespace: string; name: string }) {
  const { crd, namespace, name } = props;
  const path = everyVersionPath(crd, namespace, name);
  const read = useRead<EveryVersion>(path, (signal) => json<EveryVersion>(path, { signal }));
  const found = read.value;
  const served = found?.versions.find((one) => one.served)?.version;
  const names = namesOf(crd);
  const past = served === undefined ? undefined : `/instar/history${objectPath(names, served, namespace, name)}`;
  const history = useHistory(past, found ? revisionOf(found) : "");
  return (
    <Page
      title={name}
      crumbs={[
        { text: "CRDs", href: "/console/" },
        { text: crd, href: pagePath("crds", crd) },
        { text: namespace === "" ? "objects" : `objects in ${namespace}`, href: withQuery(pagePath("objects", crd), { namespace }) },
      ]}
      twins={[
        { text: "at every version", href: path },
        ...(served === undefined ? [] : [{ text: `at ${served}`, href: objectPath(names, served, namespace, name) }]),
        ...(past === undefined || !history.value ? [] : [{ text: "history", href: past }]),
      ]}
      actions={served !== undefined && <Following path={collectionPath(names, served, namespace)} name={name} reload={read.reload} />}
    >
      {read.problem && <ProblemNote problem={read.problem} retry={read.reload} />}
      {!found && read.loading && <Loading what={name} />}
      {found && <Versions found={found} />}
      {found && past !== undefined && <History path={past} read={history} />}
    </Page>
  );
}

function revisionOf(found: EveryVersion): string {
  return textAt(found.versions.find((one) => one.object !== null)?.object, "metadata", "resourceVersion");
}

function Following(props: { path: string; name: string; reload: () => void }) {
  const state = useChanges(props.path, props.reload, `metadata.name=${props.name}`);
  return <LiveMark state={state} />;
}

function Versions(props: { found: EveryVersion }) {
  const { found } = props;
  const { query } = route.value;
  const [managed, owners] = [query.get("managed") === "1", query.get("owners") === "1"];
  const toggleOwners = useCallback(() => choose({ owners: route.value.query.get("owners") === "1" ? undefined : "1" }), []);
  useKey("o", toggleOwners);
  const versions = useMemo(() => [...found.versions].sort((left, right) => byAge(left.version, right.version)), [found]);
  const shown = versions.filter((one) => one.object !== null);
  const reference = Math.max(0, shown.findIndex((one) => one.stored === true || (found.storedVersion === null && one.storage)));
  const rows = useMemo(() => align(shown.map((one) => withoutNoise(one.object, managed))), [shown, managed]);
  const owned = useMemo(() => (owners ? ownersOf(shown[reference]?.object ?? null) : undefined), [owners, shown, reference]);
  const columns: SideColumn[] = shown.map((one) => ({
    id: one.version,
    head: (
      <>
        <strong>{one.version}</strong> {one.stored && <Badge tone="info">stored</Badge>} {one.storage && !one.stored && <Badge>storage version</Badge>}{" "}
        {!one.served && <Badge>not served</Badge>} <Copy text={() => yamlText(one.object)} />
      </>
    ),
  }));
  return (
    <>
      <p class="subtitle">
        {found.storedVersion === null ? "The stored version is not available on this cluster." : `Stored at ${found.storedVersion}`}
        {found.storedBytes !== null && `, ${plural(found.storedBytes, "byte")}`}
      </p>
      {versions
        .filter((one) => one.error !== null)
        .map((one) => (
          <div key={one.version} class="problem" role="alert">
            <strong>It cannot be shown at {one.version}</strong>
            <p>{one.error?.message}</p>
          </div>
        ))}
      {shown.length > 0 && (
        <SideBySide
          label="the object at every version"
          columns={columns}
          rows={rows}
          reference={0}
          {...(owned ? { note: (row) => <Owners owners={owned.get(row.path)} /> } : {})}
          tools={
            <>
              <label class="check">
                <input type="checkbox" checked={owners} onChange={toggleOwners} /> Owners of fields
              </label>
              <label class="check">
                <input type="checkbox" checked={managed} onChange={() => choose({ managed: managed ? undefined : "1" })} /> managedFields
              </label>
              <span class="hint">{count(rows.length)} lines</span>
            </>
          }
        />
      )}
    </>
  );
}

function Owners(props: { owners: Owner[] | undefined }) {
  if (!props.owners) return null;
  return (
    <span class="owners">
      {props.owners.map((owner, index) => (
        <span key={index} class="badge plain" title={`${owner.operation} at ${owner.apiVersion} ${owner.time} ${owner.subresource}`}>
          {owner.manager}
        </span>
      ))}
    </span>
  );
}
