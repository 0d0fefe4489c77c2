/** A dialog of the browser's own: it keeps the focus inside and closes by Escape. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export function Dialog(props: { open: boolean; label: string; onClose?: () => void; children: ComponentChildren }) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = box.current;
    if (!dialog) return;
    if (props.open && !dialog.open) dialog.showModal();
    if (!props.open && dialog.open) dialog.close();
  }, [props.open]);
  return (
    <dialog
      ref={box}
      aria-label={props.label}
      onCancel={(event) => {
        event.preventDefault();
        props.onClose?.();
      }}
    >
      {props.open && props.children}
    </dialog>
  );
}
