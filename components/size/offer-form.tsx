"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useState } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { plural } from "#components/format.ts";
import { Dialog } from "#components/ui/dialog.tsx";
import { Check, Field } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { useToast } from "#components/ui/toast.tsx";
import { useEdit } from "#components/use-edit.ts";
import { readCores, readGib } from "#components/workspace/size-words.ts";
import type { SizeList, SizeView } from "#server/contracts/workspace-size.ts";

const KNOWN = ["name", "description", "cpuMilli", "memoryBytes", "position", "teamIds", "isDefault"];

/** Offers a size, or changes one that is offered. */
export default function OfferForm({
  size,
  teams,
  onClose,
}: {
  size?: SizeView;
  teams: { id: string; name: string }[];
  onClose: () => void;
}) {
  const router = useRouter();
  const toast = useToast();
  const { pending, error, fields, run, version } = useEdit<SizeList, number | undefined>(KNOWN, size?.version);
  const [unread, setUnread] = useState<{ cpuMilli?: string; memoryBytes?: string }>({});
  const [everybody, setEverybody] = useState(size?.teamIds === undefined || size.teamIds === null);
  const [some, setSome] = useState<ReadonlySet<string>>(() => new Set(size?.teamIds ?? []));
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const [cpuMilli, memoryBytes] = [readCores(formText(form, "cores")), readGib(formText(form, "memory"))];
    setUnread({
      ...(cpuMilli === undefined && { cpuMilli: "A number like 2 or 0.5." }),
      ...(memoryBytes === undefined && { memoryBytes: "A number like 8 or 1.5." }),
    });
    if (cpuMilli === undefined || memoryBytes === undefined) return;
    const body = {
      ...{ name: formText(form, "name"), description: formText(form, "description"), cpuMilli, memoryBytes },
      position: Number(formText(form, "position")),
      teamIds: everybody ? null : [...some],
      isDefault: form.get("isDefault") !== null,
    };
    const done = await run(() =>
      size === undefined
        ? api("POST", "/workspace-sizes", body)
        : api("PUT", `/workspace-sizes/${size.id}`, { ...body, version }),
    );
    if (!done) return;
    onClose();
    toast(`The size ${body.name} is saved.`);
    router.refresh();
  };
  const turn = (team: string, on: boolean) =>
    setSome((before) => new Set(on ? [...before, team] : [...before].filter((each) => each !== team)));
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={size === undefined ? "Add a size" : `Edit ${size.name}`}
      description={
        size === undefined
          ? "Launches offer it from now on."
          : `${plural(size.workspaces ?? 0, "workspace")} with it: what is changed counts from their next start on.`
      }
    >
      <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
        <Field label="Name" name="name" required maxLength={40} defaultValue={size?.name} error={fields.name} />
        <Field
          label="Description"
          name="description"
          maxLength={200}
          defaultValue={size?.description}
          hint="What it is good for"
          error={fields.description}
        />
        <div className="grid grid-cols-2 gap-4 sm:grid-cols-3">
          <Field
            label="Cores"
            name="cores"
            required
            inputMode="decimal"
            autoComplete="off"
            defaultValue={size && size.cpuMilli / 1000}
            error={unread.cpuMilli ?? fields.cpuMilli}
          />
          <Field
            label="Memory"
            name="memory"
            suffix="GiB"
            required
            inputMode="decimal"
            autoComplete="off"
            defaultValue={size && size.memoryBytes / 2 ** 30}
            error={unread.memoryBytes ?? fields.memoryBytes}
          />
          <Field
            label="Position"
            name="position"
            type="number"
            min={0}
            max={100_000}
            required
            defaultValue={size?.position ?? 100}
            hint="Smaller comes first"
            error={fields.position}
          />
        </div>
        <fieldset className="flex flex-col gap-1.5">
          <legend className="mb-1.5 text-sm font-medium">Offered to</legend>
          <Check label="Everybody" checked={everybody} onChange={(event) => setEverybody(event.target.checked)} />
          {!everybody && (
            <div className="flex max-h-48 flex-col gap-1.5 overflow-y-auto border-l border-line pl-3">
              {teams.map((team) => (
                <Check
                  key={team.id}
                  label={team.name}
                  checked={some.has(team.id)}
                  onChange={(event) => turn(team.id, event.target.checked)}
                />
              ))}
            </div>
          )}
          {fields.teamIds && <p className="text-sm text-bad">Choose a team, or everybody.</p>}
        </fieldset>
        <div>
          <Check
            label="Default"
            name="isDefault"
            defaultChecked={size?.isDefault}
            hint="Used for a launch without a size"
          />
          {fields.isDefault && <p className="mt-1 text-sm text-bad">{fields.isDefault}</p>}
        </div>
        <FormFooter error={error} pending={pending} onCancel={onClose} save="Save size" />
      </form>
    </Dialog>
  );
}
