/** What shapes quotas over time: policies, calendars, reservations, requests for more, stop switches. */
import { z } from "zod";
import { editedVersion, gpuType, idOf, instant, milli, teamId, userId } from "./common.ts";
import { typedAmount, typedTotal } from "./typed-amount.ts";
import { customSizes, sizeCpuMilli, sizeMemoryBytes } from "./workspace-size.ts";
import { zoneName } from "./zone-name.ts";

export const stopId = idOf("stp");
export const reservationId = idOf("rsv");
export const quotaRequestId = idOf("qrq");

/** Minutes since Monday 00:00 by the clocks of the installation's time zone (`timeZone` of `calendarList`). */
const minuteOfWeek = z.int().min(0).max(10_079);

export const stopView = z.strictObject({
  id: stopId,
  scope: z.enum(["all", "team", "user"]),
  /** The team or the person; null for all. */
  subjectId: z.string().nullable(),
  /** For everybody whom it stops. */
  reason: z.string(),
  createdAt: instant,
});
export const stopList = z.strictObject({ stops: z.array(stopView) });
export type StopList = z.infer<typeof stopList>;
export const setStopInput = z
  .strictObject({
    scope: z.enum(["all", "team", "user"]),
    subjectId: z.union([teamId, userId]).optional(),
    reason: z.string().trim().min(1, "Say why, for those whom it stops.").max(200),
    /** Also ends what is held: notebooks live, memory is parked. */
    endLeases: z.boolean().default(false),
  })
  .refine((input) => (input.scope === "all") === (input.subjectId === undefined), {
    error: "Name the team or the person, and nobody when all are stopped.",
    path: ["subjectId"],
  });
export type SetStopInput = z.input<typeof setStopInput>;
export const setStopAnswer = z.strictObject({ id: stopId, endedLeases: z.int() });
export type SetStopAnswer = z.infer<typeof setStopAnswer>;
export const liftStopInput = z.strictObject({ id: stopId });
export type LiftStopInput = z.input<typeof liftStopInput>;

export const teamPolicy = z.strictObject({
  /** The longest lease, extensions included; null follows the installation. */
  maxLeaseSeconds: z.int().min(60).max(31_536_000).nullable(),
  /** A lease without GPU work for so long is parked and released; null follows the installation. */
  idleSeconds: z.int().min(60).max(31_536_000).nullable(),
  /** A workspace without activity for so long is stopped; null follows the installation. */
  workspaceIdleSeconds: z.int().min(300).max(31_536_000).nullable().default(null),
  /** any; own-team: shares a card with nobody else; whole-cards: takes whole cards only. */
  coTenancy: z.enum(["any", "own-team", "whole-cards"]),
  /** none: a lease uses what others on its device leave idle; share: never more than its share, even alone. */
  computeCeiling: z.enum(["none", "share"]).default("none"),
  /** Before a lease of the team has run so long it is not taken back; null follows the installation. */
  minRunSeconds: z.int().min(0).max(604_800).nullable().default(null),
  /** From the first word to the release of a lease that is taken back; null follows the installation. */
  noticeSeconds: z.int().min(10).max(86_400).nullable().default(null),
  /** A kernel that runs for so long is told to its holder and the leads, and audited; 0: none is; null follows the installation. */
  longKernelSeconds: z.int().min(0).max(604_800).nullable().default(null),
  /** Who of the team may choose a workspace's cores and memory freely; null follows the installation, as both bounds. */
  customSizes: customSizes.nullable().default(null),
  maxCpuMilli: sizeCpuMilli.nullable().default(null),
  maxMemoryBytes: sizeMemoryBytes.nullable().default(null),
});
/** `version` is 0 while the team has no policy of its own: the installation's counts. */
export const teamPolicyView = teamPolicy.extend({
  version: z.int().min(0),
  /** What counts where the policy says nothing; `workspaceIdleSeconds` or `longKernelSeconds` 0: never. */
  installation: z.strictObject({
    maxLeaseSeconds: z.int(),
    idleSeconds: z.int(),
    workspaceIdleSeconds: z.int(),
    minRunSeconds: z.int(),
    noticeSeconds: z.int(),
    longKernelSeconds: z.int(),
    customSizes,
    maxCpuMilli: z.int(),
    maxMemoryBytes: z.int(),
  }),
});
export type TeamPolicyView = z.infer<typeof teamPolicyView>;
/** Every team with its policy, for whoever sets them. */
export const teamPolicyList = z.strictObject({
  teams: z.array(
    z.strictObject({
      id: teamId,
      name: z.string(),
      policy: teamPolicyView,
      /** Its workspaces, and those of them that attach at the first GPU work by themselves. */
      workspaces: z.int(),
      attachThemselves: z.int(),
    }),
  ),
});
export type TeamPolicyList = z.infer<typeof teamPolicyList>;
export const setPolicyInput = teamPolicy.extend({ teamId, version: editedVersion });
export type SetPolicyInput = z.input<typeof setPolicyInput>;

export const quotaWindow = z.strictObject({
  fromMinute: minuteOfWeek,
  toMinute: minuteOfWeek,
  guaranteedMilli: milli,
  limitMilli: milli,
});
export type QuotaWindow = z.infer<typeof quotaWindow>;
export const setQuotaWindowsInput = z.strictObject({
  teamId,
  gpuType,
  windows: z.array(quotaWindow).max(50),
  version: editedVersion,
});
export type SetQuotaWindowsInput = z.input<typeof setQuotaWindowsInput>;
/** `version` is 0 while the calendar was never saved. */
export const quotaWindows = z.strictObject({ windows: z.array(quotaWindow), version: z.int().min(0) });
export const readQuotaWindowsInput = z.strictObject({ teamId, gpuType });
export type ReadQuotaWindowsInput = z.input<typeof readQuotaWindowsInput>;
export type QuotaWindows = z.infer<typeof quotaWindows>;

export const kindWindow = z.strictObject({
  fromMinute: minuteOfWeek,
  toMinute: minuteOfWeek,
  kind: z.enum(["interactive", "batch"]),
});
export type KindWindow = z.infer<typeof kindWindow>;
export const setKindWindowsInput = z.strictObject({
  gpuType,
  windows: z.array(kindWindow).max(50),
  version: editedVersion,
});
export type SetKindWindowsInput = z.input<typeof setKindWindowsInput>;
export const kindWindows = z.strictObject({ windows: z.array(kindWindow), version: z.int().min(0) });
export const readKindWindowsInput = z.strictObject({ gpuType });
export type ReadKindWindowsInput = z.input<typeof readKindWindowsInput>;
export type KindWindows = z.infer<typeof kindWindows>;

/** Whether all guarantees of a type fit its devices at every time; nothing is saved. */
export const packingProof = z.strictObject({
  /** Why it would be refused; null: it can be saved. */
  refusal: z.string().nullable(),
  /** The first time at which they do not fit, and how far they were laid on the devices then. */
  at: instant.nullable(),
  packing: z.array(
    z.strictObject({
      device: z.string(),
      pieces: z.array(z.strictObject({ teamName: z.string(), milli: z.int() })),
      leftMilli: z.int(),
    }),
  ),
  /** Left over, at worst, on devices that hold a guarantee: too small for the largest requests. */
  spareMilli: z.int(),
});
export type PackingProof = z.infer<typeof packingProof>;

/** Each GPU type's own calendar, and those of its quotas as far as the reader may see the teams. */
export const calendarList = z.strictObject({
  /** By whose clocks all of them count their weekdays and hours: the installation's zone, by its IANA name. */
  timeZone: z.string(),
  calendars: z.array(
    z.strictObject({
      gpuType: z.string(),
      windows: z.array(kindWindow),
      version: z.int().min(0),
      quotas: z.array(
        z.strictObject({
          teamId,
          teamName: z.string(),
          /** What holds outside the windows. */
          guaranteedMilli: milli,
          limitMilli: milli,
          windows: z.array(quotaWindow),
          version: z.int().min(0),
        }),
      ),
    }),
  ),
});
export type CalendarList = z.infer<typeof calendarList>;

export const reservationView = z.strictObject({
  id: reservationId,
  teamId,
  /** The only member of the team who may use it; null: all of the team. */
  userId: userId.nullable(),
  userName: z.string().nullable(),
  gpuType: z.string(),
  milli: z.int(),
  /** Size of the leases that it is for. */
  unitMilli: z.int(),
  startsAt: instant,
  endsAt: instant,
  note: z.string(),
  /** The same for all that were reserved together, week by week; null: it is alone. */
  seriesId: reservationId.nullable(),
});
export type ReservationView = z.infer<typeof reservationView>;
export const reservationList = z.strictObject({ reservations: z.array(reservationView) });
export type ReservationList = z.infer<typeof reservationList>;
export const repetition = z.strictObject({
  /** The last day on which one may begin, by the zone's clocks. */
  until: z.iso.date("A date is needed, e.g. 2027-02-28."),
  /** Whose clocks show the same times of day every week, by its IANA name. */
  timeZone: zoneName("Enter an IANA time zone, e.g. Europe/Berlin. An offset such as +02:00 is not accepted."),
});
export type Repetition = z.infer<typeof repetition>;
export const createReservationInput = z
  .strictObject({
    teamId,
    /** One member of the team, for whom alone it is. */
    userId: userId.optional(),
    gpuType,
    /** All of it together: `4` (GPUs), `2.5`, or `160G` where its leases are memory, too. */
    amount: typedTotal,
    /** What one lease of it is, at most one GPU: `0.5`, `40G`. */
    unit: typedAmount,
    startsAt: instant,
    endsAt: instant,
    note: z.string().max(200).default(""),
    /** Every week from then on, all or none of them; left out: once. */
    repeat: repetition.optional(),
  })
  .refine((input) => Date.parse(input.startsAt) < Date.parse(input.endsAt), {
    error: "A reservation ends after it begins.",
    path: ["endsAt"],
  });
export type CreateReservationInput = z.input<typeof createReservationInput>;
/** The first one, and those of the following weeks. */
export const createdReservation = reservationView.extend({ following: z.array(reservationView) });
export type CreatedReservation = z.infer<typeof createdReservation>;
/** What a reservation would do; nothing is saved. */
export const reservationEffects = packingProof.extend({
  /** How many it would make, one a week; 0 where it would be refused. */
  count: z.int(),
  /** Of what runs now and lasts until the first of them: taken back, with notice, when the team takes all of it at once. */
  displaced: z.array(z.strictObject({ who: z.string(), teamName: z.string(), milli: z.int() })),
});
export type ReservationEffects = z.infer<typeof reservationEffects>;
export const removeReservationInput = z.strictObject({
  id: reservationId,
  /** `true`: also all later ones of its series. */
  following: z.enum(["true", "false"]).default("false"),
});
export type RemoveReservationInput = z.input<typeof removeReservationInput>;

export const quotaRequestView = z.strictObject({
  id: quotaRequestId,
  teamId,
  gpuType: z.string(),
  userId,
  /** On top of the quota. */
  guaranteedMilli: z.int(),
  limitMilli: z.int(),
  startsAt: instant,
  endsAt: instant,
  reason: z.string(),
  state: z.enum(["asked", "approved", "refused"]),
  decidedAt: instant.nullable(),
});
export type QuotaRequestView = z.infer<typeof quotaRequestView>;
export const quotaRequestList = z.strictObject({ requests: z.array(quotaRequestView) });
export type QuotaRequestList = z.infer<typeof quotaRequestList>;
export const askQuotaInput = z
  .strictObject({
    teamId,
    gpuType,
    guaranteedMilli: milli.default(0),
    limitMilli: milli.min(1),
    /** When it begins, alone; left out or over: as soon as it is approved. */
    startsAt: instant.optional(),
    endsAt: instant,
    reason: z.string().trim().min(1, "Say what it is for.").max(500),
  })
  .refine((input) => input.guaranteedMilli <= input.limitMilli, {
    error: "What is guaranteed is part of the limit.",
    path: ["guaranteedMilli"],
  });
export type AskQuotaInput = z.input<typeof askQuotaInput>;
export const decideQuotaInput = z.strictObject({ id: quotaRequestId, approve: z.boolean() });
export type DecideQuotaInput = z.input<typeof decideQuotaInput>;
export const endQuotaRequestInput = z.strictObject({ id: quotaRequestId });
export type EndQuotaRequestInput = z.input<typeof endQuotaRequestInput>;
