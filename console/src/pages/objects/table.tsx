/** The rows in sight. */
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Crd } from "../../logic/crd";
import type { Json } from "../../logic/json";
import { count, shortAge } from "../../logic/moments";
import { pagePath } from "../../logic/paths";
import type { TableColumn, TableRow } from "../../logic/rows";
import { Empty } from "../../ui/bits";
import { useKey } from "../../ui/keys";
import { useRem, useSight } from "../../ui/virtual";
import type { Feed } from "./feed";
import { useFiltered } from "./filter";

const ROW_REM = 2;
const AHEAD = 300;

/** `tick` is the feed's: a table whose other properties stay the same is drawn anew by it alone. */
export function ObjectTable(props: { crd: Crd; feed: Feed; tick: number; abort: AbortSignal; wide: boolean; filter: string }) {
  const { crd, feed, abort, wide, filter } = props;
  const box = useRef<HTMLDivElement>(null);
  const height = Math.round(ROW_REM * useRem());
  const filtered = useFiltered(feed, filter, abort);
  const size = filtered ? filtered.length : feed.total;
  const { first, last } = useSight(box, height, size);
  useEffect(() => {
    if (!filtered) feed.want(last + AHEAD, abort);
  }, [feed, abort, last, filtered]);
  const rowAt = (index: number) => (filtered ? filtered[index] : feed.rows.at(index));
  const walk = useWalk(box, height, size);
  const columns = useMemo(() => shownColumns(feed.columns, wide), [feed.columns, wide]);
  const template = useMemo(() => templateOf(columns, crd.namespaced), [columns, crd]);
  const rows = [];
  for (let index = first; index < last; index++)
    rows.push(<RowLine key={rowAt(index)?.key ?? index} index={index} row={rowAt(index)} columns={columns} crd={crd} current={index === walk} />);
  if (size === 0) return <Empty>{filter === "" ? "No object is here." : "No object matches."}</Empty>;
  return (
    <>
      {filtered && !feed.rows.whole && <p class="hint">Searched in {count(feed.rows.size)} objects, reading on …</p>}
      <div class="table" ref={box} tabIndex={0} role="table" aria-label={`${crd.kind} objects`} aria-rowcount={size + 1} style={{ "--columns": template, "--row": `${height}px` }}>
        <div class="table-head" role="row" aria-rowindex={1}>
          {crd.namespaced && <span role="columnheader">Namespace</span>}
          {columns.map(({ column }) => (
            <span key={column.name} role="columnheader" title={column.description}>
              {column.name}
            </span>
          ))}
        </div>
        <div class="sheet" role="rowgroup" style={{ height: `${size * height}px` }}>
          <div class="window" role="presentation" style={{ transform: `translateY(${first * height}px)` }}>
            {rows}
          </div>
        </div>
      </div>
    </>
  );
}

interface ShownColumn {
  column: TableColumn;
  index: number;
}

function shownColumns(columns: TableColumn[], wide: boolean): ShownColumn[] {
  return columns.map((column, index) => ({ column, index })).filter(({ column }) => wide || column.priority === 0);
}

function templateOf(columns: ShownColumn[], namespaced: boolean): string {
  const widths = columns.map(({ column, index }) => (index === 0 ? "minmax(10rem, 3fr)" : column.type === "integer" ? "minmax(5rem, 1fr)" : "minmax(6rem, 2fr)"));
  return [...(namespaced ? ["minmax(7rem, 1.5fr)"] : []), ...widths].join(" ");
}

function RowLine(props: { index: number; row: TableRow | undefined; columns: ShownColumn[]; crd: Crd; current: boolean }) {
  const { row, columns, crd, index } = props;
  if (!row)
    return (
      <div class="table-row waiting" role="row" aria-rowindex={index + 2}>
        <span role="cell">…</span>
      </div>
    );
  return (
    <div class={`table-row${row.deleting ? " deleting" : ""}`} role="row" aria-rowindex={index + 2} data-current={props.current ? "" : undefined}>
      {crd.namespaced && <span role="cell">{row.namespace}</span>}
      {columns.map(({ column, index: place }) => (
        <span key={column.name} role="cell">
          {place === 0 ? (
            <a href={pagePath("object", crd.name, row.namespace === "" ? "_" : row.namespace, row.name)} data-index={index}>
              {row.name}
            </a>
          ) : (
            cellText(column, row, row.cells[place])
          )}
        </span>
      ))}
    </div>
  );
}

/** Ages go on while the page is open; all else is shown as the server said it. */
function cellText(column: TableColumn, row: TableRow, cell: Json | undefined): string {
  if (column.name === "Age" && row.created !== "") return shortAge(row.created, Date.now());
  if (cell === null || cell === undefined) return "";
  return typeof cell === "object" ? JSON.stringify(cell) : String(cell);
}

/** j and k, through rows that may not be on the page yet. */
function useWalk(box: { current: HTMLDivElement | null }, height: number, size: number): number {
  const [current, setCurrent] = useState(-1);
  const move = useCallback(
    (by: number) => {
      setCurrent((before) => {
        const next = Math.max(0, Math.min(size - 1, before + by));
        const element = box.current;
        if (element) {
          const top = next * height;
          if (top < element.scrollTop) element.scrollTop = top;
          const room = element.clientHeight - 2 * height;
          if (top > element.scrollTop + room) element.scrollTop = top - room;
        }
        return next;
      });
    },
    [box, height, size],
  );
  useEffect(() => {
    box.current?.querySelector<HTMLElement>(`[data-index="${current}"]`)?.focus({ preventScroll: true });
  }, [box, current]);
  useKey("j", useCallback(() => move(1), [move]));
  useKey("k", useCallback(() => move(-1), [move]));
  return current;
}
