"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useState } from "react";
import { api } from "#components/api.ts";
import { formText } from "#components/form-text.ts";
import { Dialog } from "#components/ui/dialog.tsx";
import { Field, Select, TextArea } from "#components/ui/field.tsx";
import { FormFooter } from "#components/ui/form-footer.tsx";
import { useSubmit } from "#components/use-submit.ts";
import { readCores, readGib } from "#components/workspace/size-words.ts";
import type { ImageVersionView } from "#server/contracts/image.ts";

type Proposed = NonNullable<ImageVersionView["proposed"]>;

/** What an environment shall be called, for which team, and what it holds. */
export default function ProposeForm({
  teams,
  bases,
  like,
  onClose,
}: {
  /** For which whoever proposes may do so. */
  teams: { id: string; name: string }[];
  /** Environments to begin with. */
  bases: { name: string; title: string }[];
  /** What the next version begins as. */
  like?: { name: string; proposed: Proposed };
  onClose: () => void;
}) {
  const router = useRouter();
  const before = like?.proposed;
  const [kind, setKind] = useState<Proposed["source"]["kind"]>(before?.source.kind ?? "packages");
  const [unread, setUnread] = useState<SizeErrors>({});
  const { pending, error, fields, run } = useSubmit<ImageVersionView>([
    ...(like === undefined ? ["name"] : []),
    ...["title", "description", "teamId", "source", "source.base", "source.python", "source.requirements"],
    ...["source.reference", "imports", "needs", "needs.minCudaVersion", "atLeast.cpuMilli", "atLeast.memoryBytes"],
  ]);
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const size = sizeOf(form);
    setUnread(size.wrong);
    if (Object.keys(size.wrong).length > 0) return;
    const made = await run(() =>
      api("POST", "/image-versions", { ...proposalOf(kind, form, like?.name), ...size.input }),
    );
    if (!made) return;
    onClose();
    router.push(`/environments/${made.id}`);
  };
  const wrongSource = fields["source.requirements"] ?? fields["source.reference"] ?? fields.source;
  const wrongCuda = fields["needs.minCudaVersion"] ?? fields.needs;
  const plain = { autoComplete: "off", spellCheck: false } as const;
  const source = before?.source;
  return (
    <Dialog
      open
      onOpenChange={onClose}
      title={like ? `Propose a new version of ${before?.title}` : "Propose an environment"}
      description="Sluice locks its versions, builds it and tests it in a separate workspace. People can launch it once an admin approves it."
      wide
    >
      <form className="flex flex-col gap-4" onSubmit={(event) => void submit(event)}>
        <div className="grid gap-4 sm:grid-cols-2">
          <Field
            label="Title"
            name="title"
            required
            maxLength={100}
            defaultValue={before?.title}
            error={fields.title}
          />
          {like === undefined && (
            <Field
              label="Name"
              name="name"
              required
              maxLength={40}
              {...plain}
              hint="A short word for scripts and links"
              error={fields.name}
            />
          )}
          <Select
            label="Team"
            name="teamId"
            defaultValue={before?.team?.id}
            hint="It is tested there"
            error={fields.teamId}
          >
            {teams.map((team) => (
              <option key={team.id} value={team.id}>
                {team.name}
              </option>
            ))}
          </Select>
          <Select
            label="Made of"
            name="kind"
            value={kind}
            onChange={({ currentTarget }) => setKind(currentTarget.value === "image" ? "image" : "packages")}
          >
            <option value="packages">packages, locked and built here</option>
            <option value="image">an image that was built elsewhere</option>
          </Select>
        </div>
        <TextArea
          label="Purpose"
          name="description"
          maxLength={1000}
          defaultValue={before?.description}
          hint="Shown on the launch page"
          error={fields.description}
        />
        {kind === "packages" ? (
          <>
            <div className="grid gap-4 sm:grid-cols-2">
              <Select
                label="Base"
                name="base"
                defaultValue={source?.kind === "packages" ? source.base : undefined}
                hint="Includes all packages of this environment and JupyterLab"
                error={fields["source.base"]}
              >
                {bases.map((base) => (
                  <option key={base.name} value={base.name}>
                    {base.title}
                  </option>
                ))}
              </Select>
              <Field
                label="Python"
                name="python"
                placeholder="3.11"
                defaultValue={source?.kind === "packages" ? source.python : undefined}
                {...plain}
                hint="Empty: the one of this machine"
                error={fields["source.python"]}
              />
            </div>
            <TextArea
              label="Packages"
              name="requirements"
              rows={5}
              spellCheck={false}
              className="[&_textarea]:font-mono"
              placeholder={"humanize\npandas>=2.2,<3"}
              defaultValue={source?.kind === "packages" ? source.requirements : undefined}
              hint="One per line, as in a requirements file. Installed as wheels from this machine's package index"
              error={wrongSource}
            />
          </>
        ) : (
          <Field
            label="Image"
            name="reference"
            required
            {...plain}
            placeholder="team/words@sha256:…"
            defaultValue={source?.kind === "image" ? source.reference : undefined}
            hint="By digest, so that it stays as tested. For workspaces on Kubernetes"
            error={wrongSource}
          />
        )}
        <div className="grid gap-4 sm:grid-cols-2">
          <Field
            label="Imports to test"
            name="imports"
            {...plain}
            placeholder="humanize, sklearn.cluster"
            defaultValue={before?.imports.join(", ")}
            hint="Modules that a notebook must be able to import"
            error={fields.imports}
          />
          <Field
            label="CUDA of the driver, at least"
            name="cuda"
            {...plain}
            placeholder="12.8"
            defaultValue={cudaText(before?.needs?.minCudaVersion)}
            hint="Empty: what the base needs"
            error={wrongCuda}
          />
        </div>
        <div className="grid gap-4 sm:grid-cols-2">
          <Field
            label="Cores, at least"
            name="cores"
            inputMode="decimal"
            {...plain}
            defaultValue={before?.atLeast && before.atLeast.cpuMilli / 1000}
            hint="Empty: any size of a workspace will do"
            error={unread.cores ?? fields["atLeast.cpuMilli"]}
          />
          <Field
            label="Memory, at least"
            name="memory"
            suffix="GiB"
            inputMode="decimal"
            {...plain}
            defaultValue={before?.atLeast && before.atLeast.memoryBytes / 2 ** 30}
            hint="The launch page names the sizes that are large enough"
            error={unread.memory ?? fields["atLeast.memoryBytes"]}
          />
        </div>
        <FormFooter error={error} pending={pending} onCancel={onClose} save="Propose" saving="Proposing" />
      </form>
    </Dialog>
  );
}

type SizeErrors = { cores?: string; memory?: string };

/** What a workspace of it should have: both or neither; and the sentence beside each that is no number. */
function sizeOf(form: FormData): { input: Record<string, unknown>; wrong: SizeErrors } {
  const [cores, memory] = [formText(form, "cores").trim(), formText(form, "memory").trim()];
  if (cores === "" && memory === "") return { input: {}, wrong: {} };
  const [cpuMilli, memoryBytes] = [readCores(cores), readGib(memory)];
  const wrong = {
    ...(cpuMilli === undefined && { cores: "A number like 2 or 0.5; or leave both empty." }),
    ...(memoryBytes === undefined && { memory: "A number like 8 or 1.5; or leave both empty." }),
  };
  return { input: { atLeast: { cpuMilli, memoryBytes } }, wrong };
}

function proposalOf(kind: "packages" | "image", form: FormData, name: string | undefined) {
  const [python, cuda] = [formText(form, "python").trim(), formText(form, "cuda").trim()];
  return {
    name: name ?? formText(form, "name"),
    title: formText(form, "title"),
    description: formText(form, "description"),
    teamId: formText(form, "teamId"),
    source:
      kind === "image"
        ? { kind, reference: formText(form, "reference") }
        : {
            ...{ kind, base: formText(form, "base"), requirements: formText(form, "requirements") },
            ...(python === "" ? {} : { python }),
          },
    imports: formText(form, "imports")
      .split(/[\s,]+/)
      .filter((each) => each !== ""),
    ...(cuda === "" ? {} : { needs: { minCudaVersion: cudaNumber(cuda) } }),
  };
}

/** `12.8` → 12080, as the driver counts; what is no version is refused by the server. */
function cudaNumber(text: string): number {
  const [major, minor = "0"] = text.split(".");
  return Number(major) * 1000 + Number(minor) * 10;
}

function cudaText(number: number | undefined): string | undefined {
  return number === undefined ? undefined : `${Math.floor(number / 1000)}.${Math.floor((number % 1000) / 10)}`;
}
