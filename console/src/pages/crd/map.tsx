/** Which version is converted to which, by whom, how fast, and how often that fails. */
import type { ConversionPair, Lifecycle } from "../../api/console";
import { ago, brief, count, milliseconds } from "../../logic/moments";
import { supports } from "../../logic/buckets";
import { byAge } from "../../logic/versions";

const STEP = 170;
const MIDDLE = 80;
const STATES = ["idle", "used", "failing"] as const;

export function VersionMap(props: { life: Lifecycle }) {
  const { conversions, versions } = props.life;
  const names = versions.map((version) => version.name).sort(byAge);
  const by = [...new Set(conversions.map((pair) => pair.by))].join("; ");
  if (names.length < 2) return null;
  if (by === "None") return <p class="hint notes">Conversion rewrites apiVersion and nothing else (strategy None).</p>;
  return (
    <section class="card" aria-label="conversions">
      <h2>Conversions</h2>
      <p class="hint">{by === "" ? "Nothing was converted yet." : `Converted by ${by}.`}</p>
      <div class="flow">
        <div class="scrolls" tabIndex={0} role="region" aria-label="map of versions">
          <Arcs names={names} pairs={conversions} />
        </div>
        {conversions.some((pair) => pair.count) && <Pairs pairs={conversions.filter((pair) => pair.count)} />}
      </div>
    </section>
  );
}

function Arcs(props: { names: string[]; pairs: ConversionPair[] }) {
  const { names, pairs } = props;
  const width = STEP * names.length;
  const x = (name: string) => STEP * (names.indexOf(name) + 0.5);
  const above = pairs.some((pair) => x(pair.to) > x(pair.from));
  const below = pairs.some((pair) => x(pair.to) < x(pair.from));
  const [top, bottom] = [above ? 0 : MIDDLE - 20, below ? 2 * MIDDLE : MIDDLE + 20];
  return (
    <svg class="map" viewBox={`0 ${top} ${width} ${bottom - top}`} style={{ width: `${width / 15}rem` }} role="img" aria-label={`conversions between ${names.join(", ")}`}>
      <defs>
        {STATES.map((state) => (
          <marker key={state} id={`tip-${state}`} class={state} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
            <path d="M0 0L8 4L0 8z" />
          </marker>
        ))}
      </defs>
      {pairs.map((pair) => (
        <Arc key={`${pair.from} ${pair.to}`} pair={pair} from={x(pair.from)} to={x(pair.to)} />
      ))}
      {names.map((name) => (
        <g key={name} transform={`translate(${x(name)} ${MIDDLE})`}>
          <rect x="-44" y="-14" width="88" height="28" rx="14" />
          <text text-anchor="middle" dominant-baseline="central">
            {name.length > 11 ? name.slice(0, 10) + "…" : name}
          </text>
        </g>
      ))}
    </svg>
  );
}

function Arc(props: { pair: ConversionPair; from: number; to: number }) {
  const { pair, from, to } = props;
  const side = to > from ? -1 : 1;
  const reach = Math.min(64, 18 + Math.abs(to - from) / 8);
  const [y, top] = [MIDDLE + side * 16, MIDDLE + side * (reach + 12)];
  const used = pair.count ?? 0;
  const state = pair.failures ? "failing" : used > 0 ? "used" : "idle";
  return (
    <g class={`arc ${state}`}>
      <title>{describe(pair)}</title>
      <path d={`M${from} ${y}C${from} ${top} ${to} ${top} ${to} ${y}`} stroke-width={1.5 + Math.min(3, Math.log10(used + 1))} marker-end={`url(#tip-${state})`} />
      {used > 0 && (
        <text x={(from + to) / 2} y={MIDDLE + side * (reach * 0.75 + 22)} text-anchor="middle">
          {brief(used)}
          {pair.failures ? `, ${brief(pair.failures)} failed` : ""}
        </text>
      )}
    </g>
  );
}

function describe(pair: ConversionPair): string {
  const said = [`${pair.from} to ${pair.to} by ${pair.by}`];
  if (pair.count !== null) said.push(`${count(pair.count)} objects`);
  if (pair.failures) said.push(`${count(pair.failures)} failed`);
  if (pair.meanSeconds !== null) said.push(`${milliseconds(pair.meanSeconds)} on average`);
  return said.join(", ");
}

function Pairs(props: { pairs: ConversionPair[] }) {
  const failing = props.pairs.some((pair) => pair.failures);
  const tail = props.pairs.some((pair) => supports(pair.count ?? 0, 0.99));
  return (
    <div class="scrolls" tabIndex={0} role="region" aria-label="conversions in numbers">
      <table>
        <thead>
          <tr>
            <th scope="col">From</th>
            <th scope="col">To</th>
            <th scope="col" class="right">
              Conversions
            </th>
            <th scope="col" class="right">
              Mean
            </th>
            {tail && (
              <th scope="col" class="right">
                p99
              </th>
            )}
            {failing && (
              <>
                <th scope="col" class="right">
                  Failed
                </th>
                <th scope="col">Last failure</th>
              </>
            )}
          </tr>
        </thead>
        <tbody>
          {props.pairs.map((pair) => (
            <tr key={`${pair.from} ${pair.to}`}>
              <td>{pair.from}</td>
              <td>{pair.to}</td>
              <td class="right">{pair.count === null ? "–" : count(pair.count)}</td>
              <td class="right">{pair.meanSeconds === null ? "–" : milliseconds(pair.meanSeconds)}</td>
              {tail && <td class="right">{pair.p99Seconds === null ? "–" : milliseconds(pair.p99Seconds)}</td>}
              {failing && (
                <>
                  <td class={`right ${pair.failures ? "bad" : ""}`}>{pair.failures === null ? "–" : count(pair.failures)}</td>
                  <td>{pair.lastFailure ? `${ago(pair.lastFailure.when, Date.now())}: ${pair.lastFailure.text}` : ""}</td>
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
