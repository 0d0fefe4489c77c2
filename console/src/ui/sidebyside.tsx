/** Values beside each other, what differs in colour and with a sign, for whoever sees no colour. */
import type { ComponentChildren } from "preact";
import { useCallback, useMemo, useState } from "preact/hooks";
import type { Row } from "../logic/align";
import { type Mark, SIGNS, differences, mark, onlyChanges } from "../logic/marks";
import { plural } from "../logic/moments";
import { useKey } from "./keys";
import { VirtualLines } from "./virtual";

const WORDS: Record<Mark, string> = { same: "", added: "added: ", removed: "removed: ", absent: "", problem: "refused: " };

export interface SideColumn {
  id: string;
  head: ComponentChildren;
}

export function SideBySide(props: {
  label: string;
  columns: SideColumn[];
  rows: Row[];
  /** The column others are compared with. */
  reference: number;
  /** Only what differs, to begin with. */
  brief?: boolean;
  note?: (row: Row) => ComponentChildren;
  tools?: ComponentChildren;
}) {
  const { rows, columns, reference } = props;
  const [brief, setBrief] = useState(props.brief ?? false);
  useKey("d", useCallback(() => setBrief((before) => !before), []));
  const differing = useMemo(() => differences(rows), [rows]);
  const shown = useMemo<(Row | null)[]>(() => (brief ? onlyChanges(rows) : rows), [rows, brief]);
  const several = columns.length > 1;
  return (
    <div class="side">
      <div class="toolbar">
        {several && (
          <label class="check">
            <input type="checkbox" checked={brief} onChange={(event) => setBrief(event.currentTarget.checked)} /> Only differences
          </label>
        )}
        {several && <span class="hint">{differing === 0 ? "no difference" : `${plural(differing, "line")} differ${differing === 1 ? "s" : ""}`}</span>}
        {props.tools}
      </div>
      {brief && shown.length === 0 ? (
        <p class="empty">They say the same.</p>
      ) : (
        <VirtualLines
          label={props.label}
          count={shown.length}
          class={`columns-${Math.min(columns.length, 6)}`}
          head={
            <div class="line-head">
              {columns.map((column) => (
                <div key={column.id}>{column.head}</div>
              ))}
            </div>
          }
          render={(index) => <Line key={index} row={shown[index] ?? null} columns={columns} reference={reference} note={props.note} />}
        />
      )}
    </div>
  );
}

function Line(props: { row: Row | null; columns: SideColumn[]; reference: number; note: ((row: Row) => ComponentChildren) | undefined }) {
  const { row, columns, reference, note } = props;
  if (row === null) return <div class="line gap">⋯</div>;
  return (
    <div class="line" title={row.path}>
      {columns.map((column, index) => {
        const how = columns.length > 1 ? mark(row, index, reference) : "same";
        return (
          <code key={column.id} class={how}>
            {columns.length > 1 && (
              <span class="sign" aria-hidden="true">
                {SIGNS[how]}
              </span>
            )}
            {WORDS[how] && <span class="unseen">{WORDS[how]}</span>}
            {row.cells[index]}
            {index === 0 && note?.(row)}
          </code>
        );
      })}
    </div>
  );
}
