/** Values beside each other; differences have a colour and a sign. Two columns become one on a narrow screen. */
import type { ComponentChildren } from "preact";
import { useCallback, useMemo, useState } from "preact/hooks";
import type { Row } from "../logic/align";
import { type Mark, SIGNS, differences, mark, onlyChanges } from "../logic/marks";
import { plural } from "../logic/moments";
import { type UnifiedLine, unified } from "../logic/unified";
import { useKey } from "./keys";
import { useNarrow } from "./narrow";
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
  const narrow = useNarrow() && columns.length === 2 && reference === 0;
  const joined = useMemo(() => (narrow ? unified(shown) : []), [narrow, shown]);
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
          count={narrow ? joined.length : shown.length}
          class={narrow ? "columns-1" : `columns-${Math.min(columns.length, 6)}`}
          head={
            <div class="line-head">
              {columns.map((column, index) => (
                <div key={column.id}>
                  {narrow && <span class="sign">{SIGNS[index === 0 ? "removed" : "added"]}</span>}
                  {column.head}
                </div>
              ))}
            </div>
          }
          render={(index) =>
            narrow ? (
              <JoinedLine key={index} line={joined[index] ?? null} note={props.note} />
            ) : (
              <Line key={index} row={shown[index] ?? null} columns={columns} reference={reference} note={props.note} />
            )
          }
        />
      )}
    </div>
  );
}

function JoinedLine(props: { line: UnifiedLine | null; note: ((row: Row) => ComponentChildren) | undefined }) {
  const { line, note } = props;
  if (line === null) return <div class="line gap">⋯</div>;
  return (
    <div class="line" title={line.path}>
      <code class={line.mark}>
        <span class="sign" aria-hidden="true">
          {SIGNS[line.mark]}
        </span>
        {WORDS[line.mark] && <span class="unseen">{WORDS[line.mark]}</span>}
        {line.text}
        {line.row && note?.(line.row)}
      </code>
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
