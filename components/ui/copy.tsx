"use client";

import { Check, Copy as CopyIcon } from "lucide-react";
import { useRef, useState } from "react";
import { Button } from "./button.tsx";

/** A text to carry elsewhere, with a button that copies it; the text is selected when the browser refuses. */
export function Copyable({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false);
  const box = useRef<HTMLTextAreaElement>(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
    } catch {
      box.current?.select();
    }
  };
  return (
    <div className="flex items-start gap-2">
      <textarea
        ref={box}
        readOnly
        aria-label={label}
        value={text}
        // For browsers that do not fit the box to its text.
        rows={Math.min(4, Math.ceil(text.length / 52))}
        className="field-sizing-content max-h-24 min-h-8 min-w-0 grow resize-none rounded-md border border-line bg-sunken px-2.5 py-1.5 font-mono text-sm break-all"
        onFocus={(event) => event.currentTarget.select()}
      />
      <Button onClick={() => void copy()} className="h-auto min-h-8 shrink-0">
        {copied ? <Check aria-hidden="true" className="size-4" /> : <CopyIcon aria-hidden="true" className="size-4" />}
        <span aria-live="polite">{copied ? "Copied" : "Copy"}</span>
      </Button>
    </div>
  );
}

/** The end of a dialog whose result is told this once. */
export function ShownOnce({ text, label, onDone }: { text: string; label: string; onDone: () => void }) {
  return (
    <div className="flex flex-col gap-4">
      <Copyable text={text} label={label} />
      <div className="flex justify-end">
        <Button variant="primary" onClick={onDone}>
          Done
        </Button>
      </div>
    </div>
  );
}
