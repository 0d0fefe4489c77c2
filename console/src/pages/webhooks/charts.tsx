/** Latency as a histogram, and calls and failures by the minute. Each says its numbers in words, too. */
import { count, milliseconds, plural } from "../../logic/moments";
import { trimmedBuckets } from "../../logic/buckets";

const HEIGHT = 70;
const WIDTH = 320;

export function Histogram(props: { bounds: number[]; counts: number[] }) {
  const buckets = trimmedBuckets(props.bounds, props.counts);
  const most = Math.max(1, ...buckets.map((bucket) => bucket.count));
  const step = WIDTH / Math.max(1, buckets.length);
  const said = buckets.map((bucket) => `${plural(bucket.count, "call")} ${bucket.label}`).join(", ");
  if (buckets.length === 0) return null;
  return (
    <figure class="chart">
      <figcaption>Latency</figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT + 16}`} preserveAspectRatio="xMinYMid meet" role="img" aria-label={`latency: ${said}`}>
        {buckets.map((bucket, index) => {
          const height = bucket.count === 0 ? 0 : Math.max(1, (HEIGHT * bucket.count) / most);
          return (
            <g key={index}>
              <title>{`${count(bucket.count)} ${bucket.label}`}</title>
              <rect class="ground" x={index * step + 1} y={0} width={Math.max(1, step - 2)} height={HEIGHT} />
              <rect class="calls" x={index * step + 1} y={HEIGHT - height} width={Math.max(1, step - 2)} height={height} />
              {(buckets.length < 9 || index % 2 === 0) && (
                <text x={(index + 0.5) * step} y={HEIGHT + 13} text-anchor="middle">
                  {bucket.bound === undefined ? "more" : `≤ ${milliseconds(bucket.bound)}`}
                </text>
              )}
            </g>
          );
        })}
      </svg>
    </figure>
  );
}

/** 14:05, in the time zone of the browser. */
function clock(moment: string): string {
  return new Date(moment).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}

export function Minutes(props: { minutes: { at: string; calls: number; failures: number }[] }) {
  const { minutes } = props;
  const most = Math.max(1, ...minutes.map((minute) => minute.calls));
  const step = WIDTH / Math.max(20, minutes.length);
  const start = WIDTH - minutes.length * step;
  const failed = minutes.reduce((sum, minute) => sum + minute.failures, 0);
  const called = minutes.reduce((sum, minute) => sum + minute.calls, 0);
  return (
    <figure class="chart">
      <figcaption>Calls per minute; failures in red</figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT + 16}`} preserveAspectRatio="xMinYMid meet" role="img" aria-label={`${plural(called, "call")} in ${plural(minutes.length, "minute")}, ${count(failed)} failed`}>
        <rect class="ground" x={0} y={0} width={WIDTH} height={HEIGHT} />
        {[minutes[0], minutes.at(-1)].slice(minutes.length > 8 ? 0 : 1).map(
          (minute, index, ends) =>
            minute && (
              <text key={minute.at} x={index === ends.length - 1 ? WIDTH : start} y={HEIGHT + 13} text-anchor={index === ends.length - 1 ? "end" : "start"}>
                {clock(minute.at)}
              </text>
            ),
        )}
        {minutes.map((minute, index) => {
          const all = (HEIGHT * minute.calls) / most;
          const bad = (HEIGHT * minute.failures) / most;
          return (
            <g key={minute.at}>
              <title>{`${minute.at}: ${plural(minute.calls, "call")}, ${count(minute.failures)} failed`}</title>
              <rect class="calls" x={start + index * step + 1} y={HEIGHT - all} width={Math.max(1, step - 2)} height={all} />
              <rect class="failures" x={start + index * step + 1} y={HEIGHT - bad} width={Math.max(1, step - 2)} height={bad} />
            </g>
          );
        })}
      </svg>
    </figure>
  );
}
