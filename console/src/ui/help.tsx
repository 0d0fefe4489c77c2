import { Dialog } from "./dialog";
import { SHORTCUTS, helpShown } from "./keys";

export function Help() {
  const close = () => (helpShown.value = false);
  return (
    <Dialog open={helpShown.value} label="keyboard shortcuts" onClose={close}>
      <h2>Keyboard</h2>
      <dl class="keys">
        {SHORTCUTS.map(([keys, text]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={close}>
        Close
      </button>
    </Dialog>
  );
}
