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
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT + 16}`} role="img" aria-label={`latency: ${said}`}>
        {buckets.map((bucket, index) => {
          const height = bucket.count === 0 ? 0 : Math.max(1, (HEIGHT * bucket.count) / most);
          return (
            <g key={index}>
              <title>{`${count(bucket.count)} ${bucket.label}`}</title>
              <rect class="ground" x={index * step + 1} y={0} width={Math.max(1, step - 2)} height={HEIGHT} />
              <rect class="calls" x={index * step + 1} y={HEIGHT - height} width={Math.max(1, step - 2)} height={height} />
              {(buckets.length < 9 || index % 2 === 0) && (
                <text x={(index + 0.5) * step} y={HEIGHT + 13} text-anchor="middle">
                  {bucket.bound === undefined ? "more" : milliseconds(bucket.bound)}
                </text>
              )}
            </g>
          );
        })}
      </svg>
    </figure>
  );
}

export function Minutes(props: { minutes: { at: string; calls: number; failures: number }[] }) {
  const { minutes } = props;
  const most = Math.max(1, ...minutes.map((minute) => minute.calls));
  const step = WIDTH / Math.max(20, minutes.length);
  const failed = minutes.reduce((sum, minute) => sum + minute.failures, 0);
  const called = minutes.reduce((sum, minute) => sum + minute.calls, 0);
  return (
    <figure class="chart">
      <figcaption>Calls by the minute, failures in red</figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${plural(called, "call")} in ${plural(minutes.length, "minute")}, ${count(failed)} failed`}>
        {minutes.map((minute, index) => {
          const all = (HEIGHT * minute.calls) / most;
          const bad = (HEIGHT * minute.failures) / most;
          return (
            <g key={minute.at}>
              <title>{`${minute.at}: ${plural(minute.calls, "call")}, ${count(minute.failures)} failed`}</title>
              <rect class="calls" x={index * step + 1} y={HEIGHT - all} width={Math.max(1, step - 2)} height={all} />
              <rect class="failures" x={index * step + 1} y={HEIGHT - bad} width={Math.max(1, step - 2)} height={bad} />
            </g>
          );
        })}
      </svg>
    </figure>
  );
}
