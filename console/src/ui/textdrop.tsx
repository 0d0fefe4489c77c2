/** A text that is pasted, or a file that is dropped or chosen. */
import { useId, useState } from "preact/hooks";
import { count } from "../logic/moments";

/** The server refuses more; saying so here saves the way. */
const MOST = 3_000_000;

export function TextDrop(props: { label: string; value: string; placeholder?: string; onText: (text: string) => void; main?: boolean; rows?: number }) {
  const [over, setOver] = useState(false);
  const [note, setNote] = useState("");
  const id = useId();
  const take = async (file: File | undefined) => {
    if (!file) return;
    if (file.size > MOST) {
      setNote(`${file.name} is too large: ${count(file.size)} bytes, at most ${count(MOST)} can be looked at.`);
      return;
    }
    setNote(file.name);
    props.onText(await file.text());
  };
  return (
    <div
      class={over ? "textdrop over" : "textdrop"}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        void take(event.dataTransfer?.files[0]);
      }}
    >
      <div class="toolbar">
        <label for={id}>{props.label}</label>
        <label class="button">
          Choose a file
          <input class="unseen" type="file" accept=".yaml,.yml,.json" aria-label={`${props.label}: a file`} onChange={(event) => void take(event.currentTarget.files?.[0])} />
        </label>
        <span class="hint">{note === "" ? "or drop one here" : note}</span>
      </div>
      <textarea
        id={id}
        rows={props.rows ?? 12}
        spellcheck={false}
        placeholder={props.placeholder}
        value={props.value}
        {...(props.main ? { "data-search": true } : {})}
        onInput={(event) => props.onText(event.currentTarget.value)}
      />
    </div>
  );
}
