/** Past writes of an object, newest first: manager, time, version and changes. Without a history there is no card. */
import { useMemo } from "preact/hooks";
import { json } from "../../api/client";
import { Problem } from "../../api/problem";
import { align } from "../../logic/align";
import type { JsonMap } from "../../logic/json";
import { ago } from "../../logic/moments";
import { withQuery } from "../../logic/paths";
import { Badge, Loading, ProblemNote } from "../../ui/bits";
import { type Read, useRead } from "../../ui/resource";
import { choose, route } from "../../ui/router";
import { SideBySide } from "../../ui/sidebyside";
import { withoutNoise } from "./noise";

interface Write {
  revision: number;
  operation: "create" | "update" | "delete" | "earliest";
  time?: string | null;
  managers?: { manager?: string; operation?: string; apiVersion?: string; subresource?: string }[];
  storedVersion?: string;
  changes?: string[];
  moreChanges?: number;
  problem?: string;
}

interface Past {
  more: boolean;
  revisions: Write[];
}

const OPERATIONS = { create: "created", update: "changed", delete: "deleted", earliest: "first that is remembered" } as const;

/** Undefined where the server, or its store, tells nothing of the past. */
async function readPast(path: string, signal: AbortSignal): Promise<Past | undefined> {
  try {
    return await json<Past>(withQuery(path, { limit: 50 }), { signal });
  } catch (error) {
    if (error instanceof Problem && (error.status === 404 || error.status === 400)) return undefined;
    throw error;
  }
}

/** What the server remembers of an object at a revision; without a path nothing is read. */
export function useHistory(path: string | undefined, revision: string): Read<Past | undefined> {
  return useRead(path === undefined ? "" : `${path} ${revision}`, (signal) => (path === undefined ? Promise.resolve(undefined) : readPast(path, signal)));
}

export function History(props: { path: string; read: Read<Past | undefined> }) {
  const { path, read } = props;
  const writes = useMemo(() => [...(read.value?.revisions ?? [])].reverse(), [read.value]);
  if (!read.loading && !read.problem && !read.value) return null;
  const chosen = Number(route.value.query.get("revision"));
  return (
    <section class="card" aria-label="history">
      <h2>History</h2>
      {read.problem && <ProblemNote problem={read.problem} retry={read.reload} />}
      {read.loading && writes.length === 0 && <Loading what="its past" />}
      <ol class="conditions">
        {writes.map((write, index) => (
          <WriteLine key={write.revision} path={path} write={write} before={writes[index + 1]} open={write.revision === chosen} />
        ))}
      </ol>
      {read.value?.more && <p class="hint">Older writes are in the JSON twin.</p>}
    </section>
  );
}

/** `kubectl (apply, v1)` */
function written(by: NonNullable<Write["managers"]>[number]): string {
  const how = [by.operation?.toLowerCase(), by.apiVersion?.split("/").at(-1), by.subresource].filter(Boolean).join(", ");
  return how === "" ? (by.manager ?? "") : `${by.manager ?? ""} (${how})`;
}

function WriteLine(props: { path: string; write: Write; before: Write | undefined; open: boolean }) {
  const { write, before, open } = props;
  const managers = (write.managers ?? []).map((one) => written(one));
  return (
    <li>
      <details open={open} onToggle={(event) => event.currentTarget.open !== open && choose({ revision: event.currentTarget.open ? String(write.revision) : undefined }, true)}>
        <summary>
          <Badge tone={write.operation === "delete" ? "bad" : "plain"}>{OPERATIONS[write.operation]}</Badge> {write.time ? ago(write.time, Date.now()) : ""} {managers.length > 0 && <strong>by {managers.join(", ")}</strong>}{" "}
          <span class="hint">
            revision {write.revision}
            {write.storedVersion && `, stored at ${write.storedVersion}`}
          </span>
        </summary>
        {write.problem && <p class="problem">{write.problem}</p>}
        {write.changes && write.changes.length > 0 && write.operation === "update" && (
          <p class="hint">
            {write.changes.slice(0, 12).join(", ")}
            {write.changes.length + (write.moreChanges ?? 0) > 12 && " and more"}
          </p>
        )}
        {open && <Change path={props.path} write={write} before={before} />}
      </details>
    </li>
  );
}

function Change(props: { path: string; write: Write; before: Write | undefined }) {
  const { path, write, before } = props;
  const state = async (one: Write | undefined, signal: AbortSignal) =>
    one === undefined || one.operation === "delete" ? undefined : json<JsonMap>(withQuery(path, { at: one.revision }), { signal });
  const read = useRead(`${path} ${write.revision}`, async (signal) => Promise.all([state(before, signal), state(write, signal)]));
  const rows = useMemo(() => align((read.value ?? []).map((object) => withoutNoise(object ?? null, false))), [read.value]);
  if (read.problem) return <ProblemNote problem={read.problem} retry={read.reload} />;
  if (!read.value) return <Loading what="both states" />;
  return (
    <SideBySide
      label={`what revision ${write.revision} changed`}
      rows={rows}
      reference={0}
      brief={before !== undefined}
      columns={[
        { id: "before", head: before ? `revision ${before.revision}` : "before" },
        { id: "after", head: `revision ${write.revision}` },
      ]}
    />
  );
}
