"use client";

import { createContext, type SyntheticEvent, useContext, useEffect, useState } from "react";

type Control = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

const isControl = (target: EventTarget): target is Control =>
  target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement;

const heldBy = (control: Control) =>
  control instanceof HTMLInputElement && (control.type === "checkbox" || control.type === "radio")
    ? String(control.checked)
    : control.value;

/** Reports changes that no field holds to the enclosing dialog. No effect outside a dialog. */
export const DialogEdits = createContext<(changed: boolean) => void>(() => undefined);

/** Marks changes outside of fields as unsaved, such as added or removed entries. */
export function useUnsavedChanges(changed: boolean): void {
  const mark = useContext(DialogEdits);
  useEffect(() => {
    mark(changed);
    return () => mark(false);
  }, [mark, changed]);
}

/**
 * Follows the edits in a dialog: a field counts while it is there and differs from what it held when it got the focus
 * for the first time. What was typed and taken back is no change.
 */
export function useEdits() {
  const [edits] = useState(followEdits);
  return edits;
}

function followEdits() {
  const before = new WeakMap<Control, string>();
  const edited = new Set<Control>();
  let marked = false;
  const remember = ({ target }: SyntheticEvent) => {
    if (isControl(target) && !before.has(target)) before.set(target, heldBy(target));
  };
  const note = ({ target }: SyntheticEvent) => {
    if (isControl(target)) edited.add(target);
  };
  return {
    listeners: {
      onFocusCapture: remember,
      onPointerDownCapture: remember,
      onInputCapture: note,
      onChangeCapture: note,
    },
    mark: (changed: boolean) => {
      marked = changed;
    },
    areUnsaved: () =>
      marked || [...edited].some((control) => control.isConnected && heldBy(control) !== before.get(control)),
  };
}
