/** The catalogue; pages call an image an environment. */
import { z } from "zod";
import { idOf, instant, teamId } from "./common.ts";
import { deviceNeeds } from "./lease.ts";
import { isRequirement } from "./requirement.ts";
import { typedLine, typedWord } from "./typed-name.ts";
import { customSize } from "./workspace-size.ts";

/** Two dashes in a row stand between the name and the version of what was locked here. */
const imageName = typedWord({
  max: 40,
  also: "-",
  sentence: "A name is a short lower-case word: letters a to z, digits and single dashes.",
}).refine((name) => !name.includes("--"), "Two dashes in a row are not allowed.");

const requirements = z
  .string()
  .max(20_000)
  .superRefine((text, context) => {
    // A lone carriage return would be a line's end to those who read it next, and what follows it a line of its own.
    if (!/^[\n\t\x20-\x7e]*$/.test(text))
      return context.addIssue({
        code: "custom",
        message: "Letters outside ASCII and control characters are not taken.",
      });
    const wrong = text
      .split("\n")
      .map((line) => line.replace(/(^|\s)#.*$/, "").trim())
      .find((line) => line !== "" && (line.length > 300 || line.includes(" --") || !isRequirement(line)));
    if (wrong === undefined) return;
    context.addIssue({
      code: "custom",
      message: `"${wrong.slice(0, 80)}" is no package with versions, such as humanize>=4. Addresses, paths and options are not taken.`,
    });
  });

/** What a proposed environment is made of. */
export const proposalSource = z.discriminatedUnion("kind", [
  /** Locked and built on this machine, for the launcher `local`. */
  z.strictObject({
    kind: z.literal("packages"),
    /** The environment that it begins with, one that comes with this installation, e.g. `cuda-python`. */
    base: imageName,
    /** e.g. `3.11`; left out, the machine's that the base takes. */
    python: z
      .string()
      .regex(/^3\.\d{1,2}$/, "A Python version is written 3.11.")
      .optional(),
    /** What it holds beside its base, one package a line. */
    requirements,
  }),
  /** Built elsewhere, for the launcher `kubernetes`. */
  z.strictObject({
    kind: z.literal("image"),
    /** By digest, so that it stays what was tested. */
    reference: z
      .string()
      .trim()
      .max(500)
      .regex(
        /^[a-z0-9][a-zA-Z0-9._:/-]*@sha256:[0-9a-f]{64}$/,
        "An image is named by its digest: name@sha256: and 64 digits.",
      ),
  }),
]);
export type ProposalSource = z.infer<typeof proposalSource>;

/** What somebody has proposed; it never changes. */
export const proposal = z.strictObject({
  title: typedLine({ max: 100, needed: "A title is needed." }),
  /** What it is for. */
  description: z.string().trim().max(1000),
  source: proposalSource,
  /** Modules that a notebook of it must be able to import, e.g. `humanize`. */
  imports: z
    .array(z.string().regex(/^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/, "A module's name is needed, e.g. sklearn.cluster."))
    .max(50)
    .default([]),
  /** What its programs need of a device; left out, what the base needs. */
  needs: deviceNeeds.optional(),
  /** What a workspace of it should have of processor and memory; left out, any size will do. */
  atLeast: customSize.optional(),
});
export type Proposal = z.infer<typeof proposal>;

export const proposeImageInput = proposal.extend({
  /** Its word: a new one, or that of an environment of the same team, which gets a new version. */
  name: imageName,
  /** For which team, in which it is tested. */
  teamId,
});
export type ProposeImageInput = z.input<typeof proposeImageInput>;

export const imageView = z.strictObject({
  id: idOf("img"),
  name: z.string(),
  title: z.string(),
  description: z.string(),
  /** Teams that may launch it; null: all. */
  teamIds: z.array(teamId).nullable(),
  /** The newest approved version for the teams of whoever asks, which a new workspace gets. */
  version: z.strictObject({
    id: idOf("imv"),
    version: z.string(),
    buildState: z.enum(["pending", "building", "ready", "failed"]),
    buildMessage: z.string().nullable(),
    /** How many packages it holds; null before it is built here. */
    packageCount: z.int().nullable(),
    /** What a workspace of it should have; null: any size will do. */
    atLeast: customSize.nullable(),
    /** Who has approved it, and when; null: it comes with this installation. */
    approved: z.strictObject({ by: z.string().nullable(), at: instant }).nullable(),
  }),
  /** Those before it that are approved, the newest first; workspaces may still have them. */
  older: z.array(z.strictObject({ id: idOf("imv"), version: z.string() })),
  /**
   * What a launch may name, the newest first, each for its own teams (null: all). Of what comes with the installation
   * that is the newest alone: a start takes what is there.
   */
  versions: z.array(
    z.strictObject({
      id: idOf("imv"),
      version: z.string(),
      teamIds: z.array(teamId).nullable(),
      atLeast: customSize.nullable(),
      /** Null: it comes with this installation. */
      approvedAt: instant.nullable(),
    }),
  ),
  /** How long its latest starts took in the median, until a kernel answered; null: none is known. */
  startSeconds: z.number().nullable(),
});
export type ImageView = z.infer<typeof imageView>;
export const imageList = z.strictObject({ images: z.array(imageView) });
export type ImageList = z.infer<typeof imageList>;

/** What a proposal may begin with. */
export const imageBaseList = z.strictObject({
  bases: z.array(z.strictObject({ name: z.string(), title: z.string() })),
});
export type ImageBaseList = z.infer<typeof imageBaseList>;

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
  /** Whose launches get it; null: everybody's. */
  teamIds: z.array(teamId).nullable(),
  /** Of what was proposed here; null: it comes with this installation. */
  proposed: z
    .strictObject({
      ...proposal.shape,
      team: z.strictObject({ id: teamId, name: z.string() }).nullable(),
      by: z.string().nullable(),
      approvedBy: z.string().nullable(),
      approvedAt: instant.nullable(),
      check: z.enum(["waiting", "running", "passed", "failed"]),
      /** Which check that is. */
      checkRun: z.int(),
      /** A sentence when it failed. */
      checkMessage: z.string().nullable(),
      /** The workspace that it is being tested in. */
      checkWorkspaceId: idOf("ws").nullable(),
    })
    .nullable(),
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
export const imageVersionDetail = imageVersionView.extend({
  packages: z.array(packageView).nullable(),
  /** pip's requirements with exact versions and hashes, of what was locked here. */
  lock: z.string().nullable(),
});
export type ImageVersionDetail = z.infer<typeof imageVersionDetail>;

/** Of the newest version. Retired, with all before it: nobody launches with them, and workspaces that have them keep them. */
export const setVersionStateInput = imageVersionInput.extend({ state: z.enum(["approved", "retired"]) });
export type SetVersionStateInput = z.input<typeof setVersionStateInput>;

/** Rolls a proposal that has passed its check out: new launches of these teams (null: everybody's) get it. */
export const approveVersionInput = imageVersionInput.extend({ teamIds: z.array(teamId).min(1).max(200).nullable() });
export type ApproveVersionInput = z.input<typeof approveVersionInput>;

/** A step or a line of a check. */
export const imageVersionEvent = z.strictObject({
  seq: z.int(),
  /** Which check of the version it belongs to. */
  run: z.int(),
  at: instant,
  kind: z.enum(["step-started", "step-done", "step-failed", "log"]),
  step: z.enum(["lock", "build", "launch", "imports", "gpu"]),
  message: z.string(),
});
export type ImageVersionEvent = z.infer<typeof imageVersionEvent>;
export const imageVersionEventsInput = imageVersionInput.extend({
  /** Only events after this sequence number. */
  after: z.coerce.number().int().min(0).default(0),
  limit: z.coerce.number().int().min(1).max(2000).default(1000),
});
export type ImageVersionEventsInput = z.input<typeof imageVersionEventsInput>;
export const imageVersionEventList = z.strictObject({ events: z.array(imageVersionEvent) });
export type ImageVersionEventList = z.infer<typeof imageVersionEventList>;

/** What a definition folder's `environment.json` says, as far as the catalogue needs it; launchers read the rest. */
export const environmentFile = z.looseObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9-]{0,39}$/),
  title: z.string().min(1).max(100),
  description: z.string().max(1000),
  env: z.record(z.string(), z.string()).default({}),
  /** What its programs need of a device, whoever asks from it. */
  needs: deviceNeeds.optional(),
  /** A program of ours that makes one of its packages. */
  build: z.string().optional(),
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
