/** One CRD: its versions and who uses them, its schema, its fields, its events. */
import { useMemo } from "preact/hooks";
import { NoSuchPage, type PageProps } from "../../app";
import { json } from "../../api/client";
import { type Lifecycle, fieldsPath, lifecyclePath } from "../../api/console";
import { type Crd, readCrd } from "../../logic/crd";
import type { JsonMap } from "../../logic/json";
import { CRDS, crdPath, pagePath, withQuery } from "../../logic/paths";
import { Badge, Loading, ProblemNote } from "../../ui/bits";
import { useChanges } from "../../ui/changes";
import { LiveMark } from "../../ui/live";
import { Page, Tabs, type Twin } from "../../ui/page";
import { type Read, useEvery, useRead } from "../../ui/resource";
import { route } from "../../ui/router";
import { Timeline } from "../../ui/timeline";
import { Events, eventsPath } from "./events";
import { Fields } from "./fields";
import { SchemaDiff } from "./schema";
import { VersionsTab } from "./versions";
import { YamlTab } from "./yaml";

const TABS = [
  { id: "versions", text: "Versions" },
  { id: "schema", text: "Schema" },
  { id: "fields", text: "Fields" },
  { id: "events", text: "Events" },
  { id: "yaml", text: "YAML" },
] as const;
type Tab = (typeof TABS)[number]["id"];

export function CrdPage(props: PageProps) {
  const name = props.parts[0];
  return name === undefined ? <NoSuchPage path={route.value.path} /> : <OneCrd name={name} />;
}

function OneCrd(props: { name: string }) {
  const { name } = props;
  const read = useRead<JsonMap>(`crd ${name}`, (signal) => json<JsonMap>(crdPath(name), { signal }));
  const life = useRead<Lifecycle>(`life ${name}`, (signal) => json<Lifecycle>(lifecyclePath(name), { signal }));
  const reload = useReloadBoth(read, life);
  const state = useChanges(CRDS, reload, `metadata.name=${name}`);
  useEvery(10, life.reload);
  const crd = useMemo(() => (read.value ? readCrd(read.value) : undefined), [read.value]);
  const tab = TABS.find(({ id }) => id === route.value.query.get("tab"))?.id ?? "versions";
  return (
    <Page
      title={crd?.kind ?? name}
      crumbs={[{ text: "CRDs", href: "/console/" }]}
      twins={twinsOf(name, tab)}
      actions={
        <>
          <LiveMark state={state} />
          <a class="button" href={pagePath("objects", name)}>
            Objects
          </a>
          <a class="button" href={pagePath("migrations", name)}>
            Migration
          </a>
          <a class="button" href={withQuery(pagePath("review"), { crd: name })}>
            Review a change
          </a>
        </>
      }
    >
      {read.problem && <ProblemNote problem={read.problem} retry={read.reload} />}
      {!crd && read.loading && <Loading what={name} />}
      {crd && (
        <>
          <p class="subtitle">
            <span class="mono">{crd.name}</span> <Badge>{crd.namespaced ? "namespaced" : "cluster"}</Badge>
          </p>
          <Timeline versions={crd.versions} />
          <Tabs<Tab> label="about this CRD" tabs={TABS} current={tab} href={(id) => withQuery(pagePath("crds", name), { tab: id === "versions" ? undefined : id })} />
          <TabBody tab={tab} crd={crd} life={life} />
        </>
      )}
    </Page>
  );
}

function useReloadBoth(first: Read<unknown>, second: Read<unknown>): () => void {
  const [one, two] = [first.reload, second.reload];
  return useMemo(() => () => {
    one();
    two();
  }, [one, two]);
}

function TabBody(props: { tab: Tab; crd: Crd; life: Read<Lifecycle> }) {
  switch (props.tab) {
    case "versions":
      return <VersionsTab crd={props.crd} life={props.life} />;
    case "schema":
      return <SchemaDiff crd={props.crd} />;
    case "fields":
      return <Fields crd={props.crd} />;
    case "events":
      return <Events crd={props.crd} />;
    case "yaml":
      return <YamlTab crd={props.crd} />;
  }
}

function twinsOf(name: string, tab: Tab): Twin[] {
  const crd = { text: "the CRD", href: crdPath(name) };
  switch (tab) {
    case "versions":
      return [{ text: "versions and their use", href: lifecyclePath(name) }, crd];
    case "fields":
      return [{ text: "field usage", href: fieldsPath(name) }, crd];
    case "events":
      return [crd, { text: "events", href: eventsPath(name) }];
    default:
      return [crd];
  }
}
