"use client";

import { useRouter } from "next/navigation";
import { type FormEvent, useState } from "react";
import { api } from "#components/api.ts";
import { DatasetChecks } from "#components/dataset/dataset-checks.tsx";
import { choicesFor, type DatasetChoice } from "#components/dataset/dataset-choice.ts";
import { formText } from "#components/form-text.ts";
import { cx, formatAmount, formatMoney } from "#components/format.ts";
import { formatGuaranteed } from "#components/lease/guaranteed.ts";
import { NO_QUOTA, NO_QUOTA_STEP } from "#components/team/no-quota.ts";
import { Button } from "#components/ui/button.tsx";
import { Field, FormError, Select } from "#components/ui/field.tsx";
import { Meter } from "#components/ui/meter.tsx";
import { Card } from "#components/ui/page.tsx";
import { State } from "#components/ui/state.tsx";
import { useSubmit } from "#components/use-submit.ts";
import { type Amount, chargeOn } from "#server/contracts/amount.ts";
import type { ImageView } from "#server/contracts/image.ts";
import { fits, sizeInWords } from "#server/contracts/size-words.ts";
import type { GpuPolicy, WorkspaceView } from "#server/contracts/workspace.ts";
import type { ChosenSize, CustomSize, SizeList } from "#server/contracts/workspace-size.ts";
import { DefaultAmountField, useDefaultAmount } from "./default-amount.tsx";
import { EnvironmentCard } from "./environment-card.tsx";
import { GpuPolicySelect } from "./gpu-policy-select.tsx";
import { sizeChoices } from "./size-choice.ts";
import { SizeFields, type SizeState, useSize } from "./size-fields.tsx";
import { VersionSelect } from "./version-select.tsx";

export type LaunchTeam = {
  id: string;
  name: string;
  types: {
    gpuType: string;
    guaranteedMilli: number;
    guaranteedNowMilli: number;
    limitMilli: number;
    usedMilli: number;
    /** The largest piece that would be granted at once. */
    atOnceMilli: number;
    /** What the devices that take leases have together, and the memory of the largest of them. */
    capacityMilli: number;
    deviceMemoryBytes: number;
    /** What a GPU costs an hour, millionths of the currency's unit; null: it has no price by the hour. */
    hourMicro: number | null;
    /** The same of one that is priced by the month: what an hour costs on average of this month. */
    averageMicro: number | null;
  }[];
};

type TeamType = LaunchTeam["types"][number];

/** What the form begins with, from a link or from what is there. */
export type LaunchValues = {
  name: string;
  image: string;
  /** Id of a version of it; undefined: the newest. */
  versionId: string | undefined;
  teamId: string;
  /** As typed: `0.5`, `40G`. */
  amount: string;
  gpuType: string | undefined;
  datasets: string[];
  /** What the link names, or what was chosen last. */
  size: ChosenSize | undefined;
};

/** Choose an environment, a size, a name, a team, datasets and the default amount; on the right, what that means now. */
export function LaunchForm({
  images,
  teams,
  datasets,
  sizes,
  currency,
  initial,
}: {
  /** Each with the launcher that runs it. */
  images: (ImageView & { launcher: string })[];
  teams: LaunchTeam[];
  datasets: DatasetChoice[];
  sizes: SizeList;
  /** Of prices: ISO 4217. */
  currency: string;
  initial: LaunchValues;
}) {
  const router = useRouter();
  const [wantedImage, setImage] = useState(initial.image);
  const [wantedVersion, setVersion] = useState(initial.versionId);
  const [teamId, setTeamId] = useState(initial.teamId);
  const amount = useDefaultAmount(initial.amount);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(() => new Set(initial.datasets));
  const [gpuPolicy, setGpuPolicy] = useState<GpuPolicy>("ask");
  const team = teams.find((each) => each.id === teamId);
  const [wantedType, setWantedType] = useState(() => chosenType(team?.types ?? [], initial.gpuType)?.gpuType);
  const type = chosenType(team?.types ?? [], wantedType);
  const gpuType = type?.gpuType;
  const offered = images.filter(({ teamIds }) => teamIds === null || teamIds.includes(teamId));
  const environment = offered.find((each) => each.name === wantedImage) ?? offered[0];
  const image = environment?.name ?? "";
  const versions = (environment?.versions ?? []).filter(({ teamIds }) => teamIds === null || teamIds.includes(teamId));
  const version = versions.find(({ id }) => id === wantedVersion);
  const launcher = images.find((each) => each.name === image)?.launcher ?? "";
  const size = useSize(sizeChoices(sizes, teamId, launcher), initial.size);
  const tooSmall = warnOfSize(environment?.title ?? "", (version ?? versions[0])?.atLeast ?? null, size);
  const choices = choicesFor(datasets, teamId);
  const mounted = choices.filter((each) => chosen.has(each.id) && each.refusals[launcher] === undefined);
  const choosesSize = size.fields.choices.sizes.length > 0 || size.fields.choices.custom;
  const part = partOf(amount.parsed, type);
  const { pending, error, fields, run } = useSubmit<WorkspaceView>([
    ...["name", "image", "teamId", "defaultAmount", "gpuType", "gpuPolicy"],
    ...(choosesSize ? ["size"] : []),
    ...(versions.length > 1 ? ["versionId"] : []),
    ...(choices.length > 0 ? ["datasets"] : []),
  ]);

  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    amount.check();
    if (!size.check() || amount.parsed === undefined) return;
    const name = formText(new FormData(event.currentTarget), "name");
    const mounts = mounted.map(({ id }) => id);
    const asked = {
      name,
      image,
      versionId: version?.id,
      teamId,
      size: size.size,
      defaultAmount: amount.text,
      gpuType,
      gpuPolicy,
      datasets: mounts,
    };
    const made = await run(() => api("POST", "/workspaces", asked));
    if (made) router.push(`/workspaces/${made.id}`);
  };

  return (
    <form
      className="grid gap-6 lg:grid-cols-[minmax(0,1fr)_20rem]"
      onSubmit={(event) => void submit(event)}
      noValidate={false}
    >
      <div className="flex max-w-3xl flex-col gap-6">
        <fieldset>
          <legend className="mb-2 text-sm font-medium">Environment</legend>
          <div className="grid gap-3 sm:grid-cols-2">
            {offered.map((each) => (
              <EnvironmentCard
                key={each.id}
                image={each}
                sizes={size.fields.choices.sizes}
                chosen={each.name === image}
                onChoose={() => setImage(each.name)}
              />
            ))}
          </div>
          {fields.image && <p className="mt-1 text-sm text-bad">{fields.image}</p>}
        </fieldset>
        {versions.length > 1 && (
          <VersionSelect versions={versions} value={version?.id} onChange={setVersion} error={fields.versionId} />
        )}
        {choosesSize && (
          <div>
            <SizeFields state={size} error={fields.size} />
            {tooSmall && (
              <p role="status" className="mt-1.5 text-sm text-warn">
                {tooSmall}
              </p>
            )}
          </div>
        )}
        <div className="grid gap-4 sm:grid-cols-2">
          <Field label="Name" name="name" defaultValue={initial.name} required maxLength={60} error={fields.name} />
          <Select
            label="Team"
            name="teamId"
            value={teamId}
            onChange={(event) => setTeamId(event.target.value)}
            error={fields.teamId}
          >
            {teams.map((each) => (
              <option key={each.id} value={each.id}>
                {each.name}
              </option>
            ))}
          </Select>
          <DefaultAmountField
            amount={amount}
            hint="What %gpu attach borrows when no amount is given: 0.5, 2 (GPUs) or 40G (GPU memory)"
            error={fields.defaultAmount}
          />
          <Select
            label="GPU type"
            value={gpuType ?? ""}
            onChange={(event) => setWantedType(event.target.value)}
            hint={gpuType === "soft" ? "The software GPU: correct, not fast; PyTorch needs a real GPU" : undefined}
            error={fields.gpuType}
          >
            {gpuType === undefined && <option value="">No type available now</option>}
            {team?.types.map((each) => (
              <option key={each.gpuType} value={each.gpuType}>
                {each.gpuType}
                {each.limitMilli === 0 ? " (limit 0)" : each.capacityMilli === 0 ? " (no GPU online)" : ""}
              </option>
            ))}
          </Select>
          <GpuPolicySelect value={gpuPolicy} onChange={setGpuPolicy} error={fields.gpuPolicy} />
        </div>
        {choices.length > 0 && (
          <fieldset>
            <legend className="mb-2 text-sm font-medium">Datasets</legend>
            <DatasetChecks
              choices={choices}
              launcher={launcher}
              chosen={new Set(mounted.map(({ id }) => id))}
              onChange={setChosen}
            />
            {fields.datasets && <p className="mt-1 text-sm text-bad">{fields.datasets}</p>}
          </fieldset>
        )}
        <FormError>{error}</FormError>
      </div>

      <aside aria-label="What this asks for">
        <Card className="flex flex-col gap-4 p-4 lg:sticky lg:top-16">
          <div>
            <p className="text-sm text-ink-2">Default amount</p>
            <p className="figures text-2xl font-medium tracking-tight">
              {amount.parsed === undefined ? "–" : amount.text.trim()}{" "}
              <span className="text-base font-normal text-ink-2">{gpuType}</span>
            </p>
            {part !== undefined && amount.parsed?.kind === "memory" && (
              <p className={cx("figures text-sm", part > 1000 ? "text-warn" : "text-ink-2")}>
                {part > 1000
                  ? `More than a GPU of type ${gpuType} has: it would be refused.`
                  : `${formatAmount(part)} of a GPU of type ${gpuType}`}
              </p>
            )}
            <p className="text-sm text-ink-2">{borrowed[gpuPolicy]}</p>
          </div>
          <div className="border-t border-line pt-3">
            <p className="text-sm text-ink-2">Free now</p>
            {type ? (
              <FreeNow type={type} wanted={part ?? 0} />
            ) : (
              <p>{team?.types.length ? "No GPU of the team's types is online" : `${NO_QUOTA}. ${NO_QUOTA_STEP}`}</p>
            )}
          </div>
          {type && gpuPolicy !== "never" && (
            <div className="border-t border-line pt-3">
              <p className="text-sm text-ink-2">Cost of an hour with it</p>
              <HourCost type={type} milli={part} currency={currency} />
            </div>
          )}
          {type && team && (
            <div className="border-t border-line pt-3">
              <p className="mb-1.5 text-sm text-ink-2">Team {team.name}</p>
              <Meter
                max={type.limitMilli}
                segments={[{ key: "used", value: type.usedMilli, look: "used" }]}
                marks={type.guaranteedNowMilli > 0 ? [{ at: type.guaranteedNowMilli, title: "guaranteed" }] : []}
                label={`${formatAmount(type.usedMilli)} of ${formatAmount(type.limitMilli)} ${type.gpuType} in use, ${formatGuaranteed(type)}`}
              />
              <p className="figures mt-1.5 text-sm text-ink-2">
                {formatAmount(type.usedMilli)} of {formatAmount(type.limitMilli)} {type.gpuType} in use,{" "}
                {formatGuaranteed(type)}
              </p>
            </div>
          )}
          {mounted.length > 0 && (
            <div className="border-t border-line pt-3">
              <p className="text-sm text-ink-2">Datasets</p>
              <ul>
                {mounted.map(({ id, name }) => (
                  <li key={id} className="break-all">
                    <code>~/datasets/{name}</code>
                  </li>
                ))}
              </ul>
            </div>
          )}
          <Button
            type="submit"
            variant="primary"
            className="h-9"
            pending={pending}
            pendingLabel="Launching"
            disabled={!image || !teamId}
          >
            Launch
          </Button>
        </Card>
      </aside>
    </form>
  );
}

/**
 * The chosen type while the team has it, else the first type with a limit above 0 and a GPU online. Other types need an
 * explicit choice: their workspaces would wait indefinitely.
 */
function chosenType(types: readonly TeamType[], wanted: string | undefined): TeamType | undefined {
  const chosen = types.find(({ gpuType }) => gpuType === wanted);
  return chosen ?? types.find(({ limitMilli, capacityMilli }) => limitMilli > 0 && capacityMilli > 0);
}

/** A sentence when the chosen size has less than the environment should have. */
function warnOfSize(title: string, atLeast: CustomSize | null, { size, fields }: SizeState): string | undefined {
  const chosen = typeof size === "string" ? fields.choices.sizes.find(({ name }) => name === size) : size;
  if (!atLeast || chosen === undefined || fits(atLeast, chosen)) return undefined;
  return `${title} should have ${sizeInWords(atLeast)} at least; with less, its programs may run out of memory.`;
}

/** The thousandths of a GPU that an amount is charged as; undefined as long as nobody knows. */
function partOf(amount: Amount | undefined, type: TeamType | undefined): number | undefined {
  if (amount?.kind === "compute") return amount.milli;
  if (amount === undefined || type === undefined || type.deviceMemoryBytes === 0) return undefined;
  return chargeOn({ milli: 1, memoryBytes: amount.bytes }, type.deviceMemoryBytes);
}

const borrowed: Record<GpuPolicy, string> = {
  ask: "Borrowed only when a notebook runs %gpu attach, not at launch.",
  "first-use": "Borrowed by the first GPU work, not at launch.",
  never: "Not borrowed: this workspace takes no GPU.",
};

/** By its price; of what is priced by the month, by what the month's costs make of that so far. */
function HourCost({ type, milli, currency }: { type: TeamType; milli: number | undefined; currency: string }) {
  const micro = type.hourMicro ?? type.averageMicro;
  if (micro === null) return <p>not priced by the hour</p>;
  return (
    <>
      <p className="figures">{milli === undefined ? "–" : formatMoney((micro * milli) / 1e7, currency)}</p>
      {type.hourMicro === null && (
        <p className="text-sm text-ink-2">On average this month: it is priced by the month</p>
      )}
    </>
  );
}

function FreeNow({ type, wanted }: { type: TeamType; wanted: number }) {
  if (type.capacityMilli === 0) return <State tone="bad">no GPU of type {type.gpuType} is online</State>;
  if (type.atOnceMilli <= 0) return <State tone="warn">0.0 {type.gpuType}: %gpu attach would wait</State>;
  return (
    <>
      <p className="figures">
        {formatAmount(type.atOnceMilli)} {type.gpuType}, granted at once
      </p>
      {wanted > type.atOnceMilli && (
        <p className="text-sm text-warn">{formatAmount(wanted)} would wait in the queue.</p>
      )}
    </>
  );
}
