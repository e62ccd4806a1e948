/** Sizes of workspaces: what is offered, and who may choose another. Cores are thousandths, memory is bytes. */
import { z } from "zod";
import { editedVersion, idOf, teamId, version, workspaceId } from "./common.ts";
import { typedName } from "./typed-name.ts";

export const sizeId = idOf("siz");

/** Thousandths of a core: a tenth of one to 1,024. */
export const sizeCpuMilli = z
  .int()
  .min(100, "A workspace needs a tenth of a core at least.")
  .max(1_024_000, "That is more than 1,024 cores.");
/** Bytes: 256 MiB to 16 TiB. */
export const sizeMemoryBytes = z
  .int()
  .min(256 * 2 ** 20, "A workspace needs 256 MiB of memory at least.")
  .max(2 ** 44, "That is more than 16 TiB of memory.");

export const sizeName = typedName({
  max: 40,
  also: " ._+-",
  sentence: "A name starts with a letter or digit; spaces, dots, dashes, + and _ may follow.",
});

export const customSize = z.strictObject({ cpuMilli: sizeCpuMilli, memoryBytes: sizeMemoryBytes });
export type CustomSize = z.infer<typeof customSize>;

/** One that is offered, by its name in whatever case, or numbers, for those who may choose them. */
export const chosenSize = z.union([sizeName, customSize]);
export type ChosenSize = z.infer<typeof chosenSize>;

/** Who may choose numbers: `leads` are a team's leads, and admins. */
export const customSizes = z.enum(["nobody", "leads", "everybody"]);
export type CustomSizes = z.infer<typeof customSizes>;

export const sizeView = z.strictObject({
  id: sizeId,
  name: z.string(),
  description: z.string(),
  cpuMilli: z.int(),
  memoryBytes: z.int(),
  /** Smaller is offered earlier. */
  position: z.int(),
  /** Those it is offered to, for others than admins their own alone; null: everybody. */
  teamIds: z.array(teamId).nullable(),
  /** What a launch gets that names none. */
  isDefault: z.boolean(),
  /** How many workspaces have it; null to those who are no admins. */
  workspaces: z.int().nullable(),
  version,
});
export type SizeView = z.infer<typeof sizeView>;

/** What counts for who asks, in one of their teams. */
export const customSizeRule = z.strictObject({
  teamId,
  mayChoose: z.boolean(),
  maxCpuMilli: z.int(),
  maxMemoryBytes: z.int(),
});
export type CustomSizeRule = z.infer<typeof customSizeRule>;

export const sizeList = z.strictObject({
  /** Everybody's and the own teams', in the order in which they are offered; an admin sees all. */
  sizes: z.array(sizeView),
  custom: z.array(customSizeRule),
  /** What each launcher can give at most; one that does not know is left out. */
  launchers: z.array(z.strictObject({ launcher: z.string(), maxCpuMilli: z.int(), maxMemoryBytes: z.int() })),
  /** What counts where a team says nothing; `version` is 0 while nobody has changed it. */
  policy: z.strictObject({
    customSizes,
    maxCpuMilli: z.int(),
    maxMemoryBytes: z.int(),
    version: z.int().min(0),
  }),
});
export type SizeList = z.infer<typeof sizeList>;

export const addSizeInput = z.strictObject({
  name: sizeName,
  description: z.string().trim().max(200).default(""),
  cpuMilli: sizeCpuMilli,
  memoryBytes: sizeMemoryBytes,
  position: z.int().min(0).max(100_000).default(100),
  /** Null: everybody. */
  teamIds: z.array(teamId).min(1).max(200).nullable().default(null),
  /** Takes that from the one that is it now; the default is offered to everybody. */
  isDefault: z.boolean().default(false),
});
export type AddSizeInput = z.input<typeof addSizeInput>;
export const editSizeInput = addSizeInput.extend({ id: sizeId, version: editedVersion });
export type EditSizeInput = z.input<typeof editSizeInput>;
export const removeSizeInput = z.strictObject({ id: sizeId });
export type RemoveSizeInput = z.input<typeof removeSizeInput>;

export const setSizePolicyInput = z.strictObject({
  customSizes,
  maxCpuMilli: sizeCpuMilli,
  maxMemoryBytes: sizeMemoryBytes,
  version: editedVersion,
});
export type SetSizePolicyInput = z.input<typeof setSizePolicyInput>;

export const setWorkspaceSizeInput = z.strictObject({ id: workspaceId, size: chosenSize, version: editedVersion });
export type SetWorkspaceSizeInput = z.input<typeof setWorkspaceSizeInput>;

/** What a workspace has of processor and memory. */
export const workspaceSize = z.strictObject({
  /** Null: numbers of its own, or a size that is no longer offered. */
  name: z.string().nullable(),
  cpuMilli: z.int(),
  memoryBytes: z.int(),
  /** What it runs with, where that differs: the next start has the other. */
  runsWith: customSize.nullable(),
});
