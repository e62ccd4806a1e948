/** The catalogue; pages call an image an environment. */
import { z } from "zod";
import { idOf, instant } from "./common.ts";
import { deviceNeeds } from "./lease.ts";

export const imageView = z.strictObject({
  id: idOf("img"),
  name: z.string(),
  title: z.string(),
  description: z.string(),
  /** The newest approved version, which a new workspace gets. */
  version: z.strictObject({
    id: idOf("imv"),
    version: z.string(),
    buildState: z.enum(["pending", "building", "ready", "failed"]),
    buildMessage: z.string().nullable(),
  }),
});
export type ImageView = z.infer<typeof imageView>;
export const imageList = z.strictObject({ images: z.array(imageView) });
export type ImageList = z.infer<typeof imageList>;

const versionState = z.enum(["proposed", "testing", "approved", "retired"]);

/** A version of an environment with all that is known of it. */
export const imageVersionView = z.strictObject({
  id: idOf("imv"),
  version: z.string(),
  state: versionState,
  image: z.strictObject({ id: idOf("img"), name: z.string(), title: z.string(), description: z.string() }),
  buildState: z.enum(["pending", "building", "ready", "failed"]),
  buildMessage: z.string().nullable(),
  builtAt: instant.nullable(),
  createdAt: instant,
  /** Whether it is what a new workspace of this environment gets. */
  offered: z.boolean(),
  /** Whether no version of its environment is newer; only this one is retired and approved. */
  newest: z.boolean(),
  /** Workspaces that have it, whoever's they are. */
  workspaces: z.int(),
  /** How many packages it holds; null before it is built here. */
  packageCount: z.int().nullable(),
});
export type ImageVersionView = z.infer<typeof imageVersionView>;
export const imageVersionList = z.strictObject({ versions: z.array(imageVersionView) });
export type ImageVersionList = z.infer<typeof imageVersionList>;

export const packageView = z.strictObject({
  name: z.string(),
  version: z.string(),
  /** As the package itself tells it; null: it does not. */
  licence: z.string().nullable(),
});
export type PackageView = z.infer<typeof packageView>;

export const imageVersionInput = z.strictObject({ id: idOf("imv") });
export type ImageVersionInput = z.input<typeof imageVersionInput>;
/** What is inside; `packages` is null before it is built on this installation. */
export const imageVersionDetail = imageVersionView.extend({ packages: z.array(packageView).nullable() });
export type ImageVersionDetail = z.infer<typeof imageVersionDetail>;

/** Of the newest version. Retired, with all before it: nobody launches with them, and workspaces that have them keep them. */
export const setVersionStateInput = imageVersionInput.extend({ state: z.enum(["approved", "retired"]) });
export type SetVersionStateInput = z.input<typeof setVersionStateInput>;

/** What a definition folder's `environment.json` says, as far as the catalogue needs it; launchers read the rest. */
export const environmentFile = z.looseObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9-]{0,39}$/),
  title: z.string().min(1).max(100),
  description: z.string().max(1000),
  env: z.record(z.string(), z.string()).default({}),
  /** What its programs need of a device, whoever asks from it. */
  needs: deviceNeeds.optional(),
});
export type EnvironmentFile = z.infer<typeof environmentFile>;

/** `image_versions.spec` for the local launcher. */
export const localImageSpec = z.strictObject({
  /** Folder of the locked definition, relative to the installation's root. */
  folder: z.string(),
  /** Environment variables of every workspace. */
  env: z.record(z.string(), z.string()),
  /** What a lease request from it needs of a device. */
  needs: deviceNeeds.optional(),
});
export type LocalImageSpec = z.infer<typeof localImageSpec>;

export const registerImageInput = z.strictObject({
  /** A folder below `server/environments`, e.g. `cuda-python`. */
  folder: z.string().regex(/^[a-z0-9][a-z0-9-]{0,39}$/),
});
export type RegisterImageInput = z.input<typeof registerImageInput>;
