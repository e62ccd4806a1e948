"use client";

import { X } from "lucide-react";
import { useRouter } from "next/navigation";
import { type FormEvent, type ReactNode, useState } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { Button, IconButton } from "#components/ui/button.tsx";
import { Dialog } from "#components/ui/dialog.tsx";
import { Field, FormError } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useUnsavedChanges } from "#components/ui/unsaved.ts";
import { useEdit } from "#components/use-edit.ts";
import { usePreview } from "#components/use-preview.ts";
import type { PackingProof } from "#server/contracts/sharing.ts";
import { Packing } from "./packing.tsx";
import { DAYS, daysOfWindows, groupsOf, type Look, overlapping, readClock, type Window, windowsOn } from "./week.ts";
import { WeekGrid } from "./week-grid.tsx";

/**
 * Edits a calendar: entries are added by the form and removed one by one, the week shows them, and nothing counts
 * before it is saved. When somebody else was faster, the entries stay as they are here.
 */
export function CalendarForm<W extends Window>({
  title,
  gpuType,
  path,
  timeZone,
  saved,
  version,
  text,
  look,
  values,
  readValues,
  proves,
  onClose,
}: {
  title: string;
  gpuType: string;
  /** Below `/api/v1`. */
  path: string;
  /** By whose clocks its weekdays and hours are. */
  timeZone: string;
  saved: W[];
  version: number;
  text: (window: W) => string;
  look: (window: W) => Look;
  /** The fields of what an entry says. */
  values: ReactNode;
  /** What they say, or the sentence about what is wrong. */
  readValues: (form: FormData) => Omit<W, keyof Window> | string;
  /** Whether guarantees depend on it. */
  proves?: boolean;
  onClose: () => void;
}) {
  const router = useRouter();
  const toast = useToast();
  const [windows, setWindows] = useState(saved);
  useUnsavedChanges(windows !== saved);
  const [wrong, setWrong] = useState<string>();
  const { preview: proof, ask } = usePreview<PackingProof>();
  const { pending, error, run, ...edit } = useEdit<unknown>([], version);
  const overlaps = overlapping(windows);
  const change = (next: W[]) => {
    setWindows(next);
    setWrong(undefined);
    if (proves) ask(() => api("POST", `${path}/preview`, { windows: next }), 0);
  };
  const add = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const days = DAYS.flatMap((day, index) => (form.has(day) ? index : []));
    const [from, to] = [readClock(formText(form, "from")), readClock(formText(form, "to"))];
    const said = readValues(form);
    if (days.length === 0) return setWrong("Choose a day.");
    if (from === undefined || to === undefined) return setWrong("Times look like 08:00.");
    if (typeof said === "string") return setWrong(said);
    const added = windowsOn(days, from, to).map((window) => ({ ...window, ...said }) as W);
    change([...windows, ...added].sort((a, b) => a.fromMinute - b.fromMinute));
  };
  const save = async () => {
    const on = { version: edit.version };
    const done = await run(() =>
      windows.length === 0 ? api("DELETE", path, on) : api("PUT", path, { windows, ...on }),
    );
    if (done === undefined) return;
    onClose();
    toast(windows.length === 0 ? "The calendar is removed." : "The calendar is saved. It counts at once.");
    router.refresh();
  };
  return (
    <Dialog open onOpenChange={onClose} wide title={title} description={`Weekdays and hours in ${timeZone}.`}>
      <div className="flex flex-col gap-4">
        <WeekGrid label={title} days={daysOfWindows(windows, text, look)} />
        <ul aria-label="Entries" className="figures flex flex-col">
          {groupsOf(windows, text).map((group, index) => {
            const words = `${group.when}: ${group.windows[0] ? text(group.windows[0]) : ""}`;
            return (
              <li
                key={group.key}
                className="flex items-center justify-between gap-3 border-b border-line py-0.5 text-sm"
              >
                <span>
                  <span className="mr-2 text-ink-2">{index + 1}</span>
                  {words}
                  {group.windows.some((window) => overlaps.has(window)) && (
                    <span className="ml-2 text-bad">overlaps with another entry</span>
                  )}
                </span>
                <IconButton
                  label={`Remove ${words}`}
                  onClick={() => change(windows.filter((window) => !group.windows.includes(window)))}
                >
                  <X aria-hidden="true" className="size-4" />
                </IconButton>
              </li>
            );
          })}
          {windows.length === 0 && <li className="text-sm text-ink-2">No entry: the same at every hour.</li>}
        </ul>
        <form
          aria-label="Add an entry"
          onSubmit={add}
          onInput={() => setWrong(undefined)}
          className="flex flex-col gap-3 rounded-md bg-sunken px-3 py-3"
        >
          <fieldset className="flex flex-wrap gap-x-4 gap-y-1">
            <legend className="mb-1 text-sm font-medium">On</legend>
            {DAYS.map((day, index) => (
              <label key={day} className="flex min-h-6 items-center gap-1.5 text-sm">
                <input type="checkbox" name={day} defaultChecked={index < 5} className="size-4 accent-accent" />
                {day}
              </label>
            ))}
          </fieldset>
          <div className="grid grid-cols-2 gap-3 sm:grid-cols-4">
            <Field label="From" name="from" type="time" required defaultValue="08:00" />
            <Field label="To" name="to" type="time" required defaultValue="20:00" />
            {values}
          </div>
          <FormError>{wrong}</FormError>
          <div>
            <Button type="submit" size="sm">
              Add entry
            </Button>
          </div>
        </form>
        {proves && <Packing proof={proof} gpuType={gpuType} />}
        <form
          className="flex flex-col gap-4"
          onSubmit={(event) => {
            event.preventDefault();
            void save();
          }}
        >
          <FormFooter error={error} pending={pending} onCancel={onClose} save="Save calendar" />
        </form>
      </div>
    </Dialog>
  );
}
