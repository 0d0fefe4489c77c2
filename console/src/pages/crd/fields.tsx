/** Which fields stored objects use, and who writes them. Counted when asked: it reads every object. */
import { useState } from "preact/hooks";
import { json } from "../../api/client";
import { type FieldUsage, type FieldUse, fieldsPath } from "../../api/console";
import type { Crd } from "../../logic/crd";
import { count, plural } from "../../logic/moments";
import { Badge, Bar, Empty, Loading, ProblemNote } from "../../ui/bits";
import { useRead } from "../../ui/resource";
import { choose, route } from "../../ui/router";
import { VirtualLines } from "../../ui/virtual";

export function Fields(props: { crd: Crd }) {
  const { name } = props.crd;
  const read = useRead<FieldUsage>(`fields ${name}`, (signal) => json<FieldUsage>(fieldsPath(name), { signal }));
  const [search, setSearch] = useState(route.value.query.get("q") ?? "");
  const usage = read.value;
  const wanted = search.trim().toLowerCase();
  const fields = (usage?.fields ?? []).filter((field) => field.path.toLowerCase().includes(wanted));
  const never = (usage?.never ?? []).filter((path) => path.toLowerCase().includes(wanted));
  return (
    <>
      {read.problem && <ProblemNote problem={read.problem} retry={read.reload} />}
      {!usage && read.loading && <Loading what="every object's fields" />}
      {usage && (
        <>
          <div class="toolbar">
            <input
              type="search"
              data-search
              aria-label="search fields"
              placeholder="Search fields   ( / )"
              value={search}
              onInput={(event) => {
                setSearch(event.currentTarget.value);
                choose({ q: event.currentTarget.value }, true);
              }}
            />
            <span class="hint">
              {usage.complete ? plural(usage.objects, "object") : `the first ${plural(usage.objects, "object")}`}, read at {usage.version}
            </span>
          </div>
          {usage.objects === 0 && <Empty>There is no object, so no field is used.</Empty>}
          {fields.length > 0 && (
            <VirtualLines label="fields in use" count={fields.length} rowRem={2} class="fields" render={(index) => <FieldLine key={index} field={fields[index]} objects={usage.objects} />} />
          )}
          {never.length > 0 && (
            <section class="card" aria-label="fields nobody uses">
              <h2>Fields no object has ({count(never.length)})</h2>
              <VirtualLines label="their paths" count={never.length} class="short" render={(index) => <div key={index} class="line"><code>{never[index]}</code></div>} />
            </section>
          )}
        </>
      )}
    </>
  );
}

function FieldLine(props: { field: FieldUse | undefined; objects: number }) {
  const { field, objects } = props;
  if (!field) return null;
  const managers = Object.entries(field.managers).sort((left, right) => right[1] - left[1]);
  return (
    <div class="line field">
      <code title={field.path}>{field.path}</code>
      <Bar value={field.objects} most={objects} label={`objects with ${field.path}`} />
      <span class="hint">{managers.slice(0, 4).map(([manager, number]) => `${manager} ${count(number)}`).join(", ")}</span>
      {!field.inSchema && <Badge tone="warn">not in the schema</Badge>}
      {field.deprecated !== null && (
        <Badge tone="warn" title={field.deprecated}>
          deprecated
        </Badge>
      )}
    </div>
  );
}
