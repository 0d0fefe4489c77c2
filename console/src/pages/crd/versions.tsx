/** The life of a CRD's versions: where objects lie, who calls what, what can be done next. */
import type { Lifecycle, LifecycleVersion, Use } from "../../api/console";
import type { Crd } from "../../logic/crd";
import { ago, count, plural } from "../../logic/moments";
import { byAge } from "../../logic/versions";
import { Badge, Bar, Empty, Loading, ProblemNote } from "../../ui/bits";
import { Notes } from "../../ui/notes";
import type { Read } from "../../ui/resource";
import { describeVersion } from "../../ui/timeline";
import { VersionMap } from "./map";
import { Steps } from "./steps";

export function VersionsTab(props: { crd: Crd; life: Read<Lifecycle> }) {
  const { crd, life } = props;
  const found = life.value;
  return (
    <>
      {life.problem && <ProblemNote problem={life.problem} retry={life.reload} />}
      {!found && life.loading && <Loading what="versions and their use" />}
      {found && (
        <>
          <Notes unknown={found.unknown} />
          <VersionMap life={found} />
          <div class="cards">
            {[...found.versions]
              .sort((left, right) => byAge(left.name, right.name))
              .map((version) => (
                <VersionCard key={version.name} crd={crd} life={found} version={version} reload={life.reload} />
              ))}
          </div>
        </>
      )}
    </>
  );
}

function VersionCard(props: { crd: Crd; life: Lifecycle; version: LifecycleVersion; reload: () => void }) {
  const { version, life, crd } = props;
  const most = Math.max(1, ...life.versions.map((one) => one.stored?.atMost ?? 0));
  const warning = crd.versions.find((one) => one.name === version.name)?.warning;
  return (
    <section class="card" aria-label={version.name}>
      <h2>
        {version.name}
        {version.storage && <Badge tone="info">storage</Badge>}
        {!version.served && <Badge>not served</Badge>}
        {version.deprecated && <Badge tone="warn">deprecated</Badge>}
      </h2>
      <p class="unseen">{describeVersion(version)}</p>
      {version.deprecated && warning && <p class="hint">Clients are told: “{warning}”</p>}
      <h3>Stored objects</h3>
      {version.stored ? (
        <>
          {version.stored.atLeast === version.stored.atMost ? (
            <Bar value={version.stored.atMost} most={most} label={`objects stored at ${version.name}`} tone={version.storage ? "" : "behind"} />
          ) : (
            <p>
              {count(version.stored.atLeast)} to {count(version.stored.atMost)} <span class="hint">estimated</span>
            </p>
          )}
        </>
      ) : (
        <p class="hint">not known</p>
      )}
      {life.usageSince !== null && (
        <>
          <h3>Used by</h3>
          <Uses uses={version.uses} since={life.usageSince} />
        </>
      )}
      {version.next.length > 0 && (
        <>
          <h3>Next steps</h3>
          <Steps crd={life.crd} version={version} reload={props.reload} />
        </>
      )}
    </section>
  );
}

function Uses(props: { uses: Use[]; since: string }) {
  if (props.uses.length === 0) return <Empty>No client, since counting began {ago(props.since, Date.now())}.</Empty>;
  return (
    <ul class="uses">
      {props.uses.slice(0, 12).map((use, index) => (
        <li key={index}>
          <strong title={use.userAgent}>{shortAgent(use.userAgent) || use.user}</strong> {use.userAgent && <span class="hint">({use.user})</span>} {verb(use.verb)}
          <div class="hint">
            {plural(use.count, "time")}, last{" "}
            <time datetime={use.last} title={use.last}>
              {ago(use.last, Date.now())}
            </time>
          </div>
        </li>
      ))}
      {props.uses.length > 12 && <li class="hint">and {props.uses.length - 12} more, in the JSON twin</li>}
    </ul>
  );
}

const VERBS: Record<string, string> = {
  get: "reads one",
  list: "lists",
  watch: "watches",
  create: "creates",
  update: "writes",
  patch: "patches",
  delete: "deletes",
  deletecollection: "deletes many",
};

/** `kubectl/v1.32.4 (linux/amd64) kubernetes/4cb5f07` is kubectl/v1.32.4. */
function shortAgent(agent: string): string {
  return agent.split(" ")[0] ?? "";
}

function verb(name: string): string {
  return VERBS[name] ?? name;
}
