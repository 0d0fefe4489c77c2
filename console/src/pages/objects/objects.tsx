/** The objects of a CRD in its own columns, however many they are. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { NoSuchPage, type PageProps } from "../../app";
import { json } from "../../api/client";
import { type Crd, bestVersion, readCrd } from "../../logic/crd";
import type { JsonMap } from "../../logic/json";
import { plural } from "../../logic/moments";
import { collectionPath, crdPath, pagePath, withQuery } from "../../logic/paths";
import { Loading, ProblemNote } from "../../ui/bits";
import { LiveMark } from "../../ui/live";
import { Page } from "../../ui/page";
import { useRead } from "../../ui/resource";
import { choose, route } from "../../ui/router";
import { Feed } from "./feed";
import { NamespacePicker } from "./namespaces";
import { ObjectTable } from "./table";

export function ObjectsPage(props: PageProps) {
  const name = props.parts[0];
  return name === undefined ? <NoSuchPage path={route.value.path} /> : <ObjectsOf name={name} />;
}

function ObjectsOf(props: { name: string }) {
  const { name } = props;
  const read = useRead<Crd>(`crd ${name}`, async (signal) => readCrd(await json<JsonMap>(crdPath(name), { signal })));
  if (!read.value)
    return (
      <Page title={name} crumbs={crumbs(name)}>
        {read.problem ? <ProblemNote problem={read.problem} retry={read.reload} /> : <Loading what={name} />}
      </Page>
    );
  return <Listing crd={read.value} />;
}

function crumbs(name: string) {
  return [
    { text: "CRDs", href: "/console/" },
    { text: name, href: pagePath("crds", name) },
  ];
}

function Listing(props: { crd: Crd }) {
  const { crd } = props;
  const { query } = route.value;
  const asked = query.get("version") ?? "";
  const version = crd.versions.some((one) => one.name === asked) ? asked : bestVersion(crd);
  const [namespace, labels, fields] = [query.get("namespace") ?? "", query.get("labels") ?? "", query.get("fields") ?? ""];
  const path = collectionPath(crd, version, namespace);
  const { feed, abort } = useFeed(path, labels, fields);
  const count_ = feed.tick.value > 0 ? feed.total : undefined;
  return (
    <Page
      title={`${crd.kind} objects`}
      crumbs={crumbs(crd.name)}
      twins={[{ text: `objects at ${version}`, href: withQuery(path, { labelSelector: labels, fieldSelector: fields, limit: 500 }) }]}
      actions={<LiveMark state={feed.state.value} problem={feed.problem.value} />}
    >
      <div class="toolbar">
        <input
          type="search"
          data-search
          aria-label="filter objects"
          placeholder="Filter by text   ( / )"
          value={query.get("q") ?? ""}
          onInput={(event) => choose({ q: event.currentTarget.value }, true)}
        />
        <label class="check">
          <input type="checkbox" checked={query.get("wide") === "1"} onChange={(event) => choose({ wide: event.currentTarget.checked ? "1" : undefined })} /> All columns
        </label>
        {count_ !== undefined && <span class="hint">{plural(count_, "object")}</span>}
      </div>
      <div class="toolbar">
        <label class="pick">
          Version
          <select value={version} onChange={(event) => choose({ version: event.currentTarget.value })}>
            {crd.versions.map((one) => (
              <option key={one.name} value={one.name} disabled={!one.served}>
                {one.name}
                {one.served ? "" : " (not served)"}
              </option>
            ))}
          </select>
        </label>
        {crd.namespaced && <NamespacePicker value={namespace} />}
        <Field label="Labels" name="labels" value={labels} placeholder="app=web,tier!=db" />
        <Field label="Fields" name="fields" value={fields} placeholder="metadata.name=a" />
      </div>
      {feed.problem.value && <ProblemNote problem={feed.problem.value} />}
      {feed.tick.value === 0 && !feed.problem.value && <Loading what="objects" />}
      {feed.tick.value > 0 && <ObjectTable crd={crd} feed={feed} tick={feed.tick.value} abort={abort} wide={query.get("wide") === "1"} filter={query.get("q") ?? ""} />}
    </Page>
  );
}

function useFeed(path: string, labels: string, fields: string): { feed: Feed; abort: AbortSignal } {
  const made = useMemo(() => ({ feed: new Feed({ path, labels, fields }), control: new AbortController() }), [path, labels, fields]);
  useEffect(() => {
    made.feed.start(made.control.signal);
    return () => made.control.abort();
  }, [made]);
  return { feed: made.feed, abort: made.control.signal };
}

/** Chosen when the field is left or Enter is pressed: a half-written selector is no question. */
function Field(props: { label: string; name: string; value: string; placeholder?: string }) {
  const [text, setText] = useState(props.value);
  useEffect(() => setText(props.value), [props.value]);
  const done = () => {
    if (text.trim() !== props.value) choose({ [props.name]: text.trim() });
  };
  return (
    <label class="pick">
      {props.label}
      <input
        value={text}
        placeholder={props.placeholder}
        spellcheck={false}
        onInput={(event) => setText(event.currentTarget.value)}
        onBlur={done}
        onKeyDown={(event) => {
          if (event.key === "Enter") done();
        }}
      />
    </label>
  );
}
