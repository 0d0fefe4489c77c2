/** Conditions of a CRD, and the events that are about it. */
import { json } from "../../api/client";
import { type Crd, isGood } from "../../logic/crd";
import { type JsonMap, listAt, textAt } from "../../logic/json";
import { ago } from "../../logic/moments";
import { withQuery } from "../../logic/paths";
import { Badge, Empty, Loading, ProblemNote } from "../../ui/bits";
import { useRead } from "../../ui/resource";

export function eventsPath(name: string): string {
  return withQuery("/api/v1/events", {
    fieldSelector: `involvedObject.kind=CustomResourceDefinition,involvedObject.name=${name}`,
    limit: 200,
  });
}

export function Events(props: { crd: Crd }) {
  const { crd } = props;
  const read = useRead<JsonMap>(`events ${crd.name}`, (signal) => json<JsonMap>(eventsPath(crd.name), { signal }));
  return (
    <>
      <section class="card" aria-label="conditions">
        <h2>Conditions</h2>
        {crd.conditions.length === 0 && <Empty>None yet.</Empty>}
        <ul class="conditions">
          {crd.conditions.map((condition) => (
            <li key={condition.type}>
              <Badge tone={isGood(condition) ? "good" : "bad"}>
                {condition.type}: {condition.status}
              </Badge>{" "}
              <strong>{condition.reason}</strong> {condition.message} <span class="hint">{condition.since && ago(condition.since, Date.now())}</span>
            </li>
          ))}
        </ul>
      </section>
      <section class="card" aria-label="events">
        <h2>Events</h2>
        {read.problem && <ProblemNote problem={read.problem} retry={read.reload} />}
        {!read.value && read.loading && <Loading what="events" />}
        {read.value && <EventList events={listAt(read.value, "items") as JsonMap[]} />}
      </section>
    </>
  );
}

function EventList(props: { events: JsonMap[] }) {
  if (props.events.length === 0) return <Empty>No event is about this CRD.</Empty>;
  const when = (event: JsonMap) => textAt(event, "lastTimestamp") || textAt(event, "eventTime") || textAt(event, "metadata", "creationTimestamp");
  const events = [...props.events].sort((left, right) => (when(left) < when(right) ? 1 : -1));
  return (
    <ul class="conditions">
      {events.map((event) => (
        <li key={textAt(event, "metadata", "uid")}>
          <Badge tone={textAt(event, "type") === "Warning" ? "warn" : "plain"}>{textAt(event, "reason")}</Badge> {textAt(event, "message")}{" "}
          <span class="hint">{ago(when(event), Date.now())}</span>
        </li>
      ))}
    </ul>
  );
}
