/** What a pod asks for by its labels. Pure. */
import { parseAmount } from "#server/contracts/amount.ts";
import type { PodSettings } from "../settings.ts";

/** The label that makes a pod borrow, as that for GPU memory does; the others say more about it. */
export const GPU_LABEL = "sluice.dev/gpu";
export const LABELS = {
  memory: `${GPU_LABEL}-memory`,
  type: `${GPU_LABEL}-type`,
  team: `${GPU_LABEL}-team`,
  wait: `${GPU_LABEL}-wait`,
} as const;
/** An annotation: which containers get the GPU, where not all do. */
export const CONTAINERS_ANNOTATION = `${GPU_LABEL}-containers`;

/** Whether a pod with these labels borrows. */
export const asksForGpu = (labels: Record<string, string>): boolean => GPU_LABEL in labels || LABELS.memory in labels;

/** As long as `%gpu attach` waits is too short for a program that nobody watches. */
const DEFAULT_WAIT_SECONDS = 3600;
const MAX_WAIT_SECONDS = 86_400;

export type Wish = { amount: string; gpuType: string; team: string; person: string; waitSeconds: number };
type Asked = { ok: true; wish: Wish } | { ok: false; message: string };

const refuse = (message: string): Asked => ({ ok: false, message });

/** Reads the labels of a pod in this namespace; what cannot be is a sentence that says what to write. */
export function wishOf(labels: Record<string, string>, namespace: string, settings: PodSettings): Asked {
  const place = placeOf(settings, namespace, labels[LABELS.team]);
  if (!place.ok) return place;
  const [gpu, memory] = [labels[GPU_LABEL] ?? "", labels[LABELS.memory] ?? ""];
  if (gpu !== "" && memory !== "")
    return refuse(`${GPU_LABEL} and ${LABELS.memory} are both set; leave ${GPU_LABEL} empty to ask for memory.`);
  const amount = gpu === "" ? memory : gpu;
  const parsed = parseAmount(amount);
  if (!parsed.ok) return refuse(`${GPU_LABEL}: ${parsed.reason.message}`);
  const gpuType = labels[LABELS.type] ?? settings.gpuType;
  if (gpuType === undefined) return refuse(`Say which GPU type: the label ${LABELS.type}, e.g. h200.`);
  const waitSeconds = secondsOf(labels[LABELS.wait]);
  if (waitSeconds === undefined)
    return refuse(`${LABELS.wait}: "${labels[LABELS.wait]}" is no length of time; write 90s, 10m or 2h, at most 24h.`);
  return { ok: true, wish: { amount, gpuType, waitSeconds, team: place.team, person: place.person } };
}

type Place = { ok: true; team: string; person: string } | { ok: false; message: string };

/** For whom a pod of this namespace borrows: nobody borrows for a team that the namespace is not given to. */
export function placeOf(settings: PodSettings, namespace: string, team: string | undefined): Place {
  const places = Object.hasOwn(settings.namespaces, namespace) ? (settings.namespaces[namespace] ?? []) : [];
  const found = team === undefined ? places[0] : places.find((place) => place.team === team);
  if (found !== undefined) return { ok: true, ...found };
  if (places.length === 0) {
    const message = `The namespace ${namespace} belongs to no team of Sluice. An admin names one: pods.namespaces in the Kubernetes settings.`;
    return { ok: false, message };
  }
  const teams = places.map((place) => place.team).join(", ");
  return {
    ok: false,
    message: `Pods of the namespace ${namespace} may not borrow for team ${team}; for ${teams} they may.`,
  };
}

/** Seconds from `90`, `90s`, `10m`, `2h`; undefined for what is none, and for more than a day. */
function secondsOf(text: string | undefined): number | undefined {
  if (text === undefined || text === "") return DEFAULT_WAIT_SECONDS;
  const [, count, unit = "s"] = /^(\d{1,6})(s|m|h)?$/.exec(text) ?? [];
  if (count === undefined) return undefined;
  const seconds = Number(count) * { s: 1, m: 60, h: 3600 }[unit as "s" | "m" | "h"];
  return seconds <= MAX_WAIT_SECONDS ? seconds : undefined;
}
