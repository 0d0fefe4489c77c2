/** The migration of one CRD: what the command would do and refuse, and how far it is. */
import { useState } from "preact/hooks";
import { json } from "../../api/client";
import { migrationPath } from "../../api/console";
import { type Problem, problemFrom } from "../../api/problem";
import type { MigrationDocument } from "../../api/tools";
import { count, lasting, plural } from "../../logic/moments";
import { pagePath } from "../../logic/paths";
import { Badge, Loading, ProblemNote } from "../../ui/bits";
import { Page } from "../../ui/page";
import { useEvery, useRead } from "../../ui/resource";
import { Actions } from "./actions";
import { Progress } from "./progress";

export function OneMigration(props: { crd: string }) {
  const { crd } = props;
  const path = migrationPath(crd);
  const [plan, setPlan] = useState<MigrationDocument["plan"]>(null);
  const [acted, setActed] = useState<MigrationDocument>();
  const [problem, setProblem] = useState<Problem>();
  const [turn, setTurn] = useState(0);
  const read = useRead<MigrationDocument>(`${path} ${turn}`, async (signal) => {
    const document = await json<MigrationDocument>(path, { signal });
    setPlan(document.plan);
    return document;
  });
  const latest = useRead<MigrationDocument>(read.value ? `${path} latest ${turn}` : "", (signal) => json<MigrationDocument>(`${path}?plan=0`, { signal }));
  const found = latest.value ?? acted ?? read.value;
  const running = found?.migration?.state === "running" || found?.migration?.state === "waiting";
  useEvery(running ? 1 : 5, latest.reload);
  const act = async (action: string) => {
    setProblem(undefined);
    try {
      setActed(await json<MigrationDocument>(`${path}/${action}`, { method: "POST", body: {} }));
      setTurn((before) => before + 1);
    } catch (error) {
      setProblem(problemFrom(error));
    }
  };
  return (
    <Page
      title={`Migration of ${crd}`}
      crumbs={[
        { text: "Migrations", href: pagePath("migrations") },
        { text: crd, href: pagePath("crds", crd) },
      ]}
      twins={[{ text: "this migration", href: path }]}
    >
      {read.problem && <ProblemNote problem={read.problem} retry={read.reload} />}
      {latest.problem && <ProblemNote problem={latest.problem} />}
      {!found && read.loading && <Loading what="the objects, to see whether each can be rewritten" />}
      {found && (
        <>
          {plan && <PlanCard plan={plan} stale={found.stale} />}
          {found.migration && <Progress migration={found.migration} engine={found.engine} />}
          {problem && <ProblemNote problem={problem} what="It was not done" />}
          <Actions actions={found.actions} crd={crd} onAct={act} />
          {acted?.verified && <Verified verified={acted.verified} />}
        </>
      )}
    </Page>
  );
}

function PlanCard(props: { plan: NonNullable<MigrationDocument["plan"]>; stale: number | null }) {
  const { plan, stale } = props;
  return (
    <section class="card" aria-label="plan">
      <h2>
        Plan {plan.needed ? <Badge tone="warn">needed</Badge> : <Badge tone="good">nothing to do</Badge>}
      </h2>
      <p>
        {plan.objects === null ? "Objects" : plural(plan.objects, "object")} of which {stale === null ? "an unknown number" : count(stale)} not at {plan.storageVersion} yet. Stored versions: {plan.storedVersions.join(", ")}.
        {plan.needed && plan.expectedSeconds !== null && ` It will take about ${lasting(Math.max(1, plan.expectedSeconds))}.`}
      </p>
      {plan.obstacles.length > 0 && (
        <div class="problem">
          <strong>What stands in the way</strong>
          <ul>
            {plan.obstacles.map((one) => (
              <li key={one}>{one}</li>
            ))}
          </ul>
        </div>
      )}
      {plan.warnings.map((one) => (
        <p key={one} class="note">
          {one}
        </p>
      ))}
    </section>
  );
}

function Verified(props: { verified: NonNullable<MigrationDocument["verified"]> }) {
  const { verified } = props;
  return (
    <section class="card" aria-label="verification" aria-live="polite">
      <h2>
        Verification <Badge tone={verified.ok ? "good" : "bad"}>{verified.ok ? "all is well" : plural(verified.problems.length, "problem")}</Badge>
      </h2>
      <p>{plural(verified.objects, "object")} read at every served version.</p>
      <ul class="conditions">
        {verified.problems.slice(0, 100).map((one, index) => (
          <li key={index}>
            <strong>{one.object}</strong> at {one.version}: {one.message}
          </li>
        ))}
      </ul>
    </section>
  );
}
