/** The catalogue; pages call an image an environment. */
import { z } from "zod";
import { idOf } from "./common.ts";
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
