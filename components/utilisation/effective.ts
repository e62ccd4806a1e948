/** How effective use is told to people. */
import { formatGpuHours, formatShare } from "#components/format.ts";

type Effective = {
  used: number;
  heldIdle: number;
  effective: number | null;
  effectiveKnown: number;
  effectiveEstimated: number;
};

/** Of what was used so much may be unknown before it is mentioned: a card is asked a moment after it has worked. */
const UNTOLD = 0.005;

/** What it means, for whoever reads it on a page. */
export const EFFECTIVE = [
  "Effective is the part of the time held in which the GPU's multiprocessors had work (SM active), averaged over all.",
  "A kernel that fills a quarter of them uses the GPU, and a quarter of that is effective.",
].join(" ");

/** Hours that were used and of which nobody knows how effective they were; nothing when that is hardly any. */
export function unknownHours({ used, effectiveKnown }: Effective): number {
  const unknown = Math.max(0, used - effectiveKnown);
  return unknown > UNTOLD * used ? unknown : 0;
}

/** The part of what was held, where it is known, 0..1; null where it is known of nothing. */
export function effectiveShare(time: Effective): number | null {
  const of = time.heldIdle + time.effectiveKnown;
  return time.effective === null || of <= 0 ? null : time.effective / of;
}

/** `42 %`; `≤ 42 %` where some of it is estimated, as an estimate is what it is at most. */
export function effectiveWords(time: Effective): string {
  if (time.effective === null) return "not known";
  const share = formatShare(time.effective, time.heldIdle + time.effectiveKnown);
  return time.effective > 0 && time.effectiveEstimated > UNTOLD * time.effective ? `≤ ${share}` : share;
}

/** What a reader has to know of these hours besides; each a sentence or two. */
export function effectiveNotes(time: Effective): string[] {
  const unknown = unknownHours(time);
  const estimated = time.effectiveEstimated > UNTOLD * (time.effective ?? 0) ? time.effectiveEstimated : 0;
  const notes: string[] = [];
  if (unknown > 0) {
    const which = `Of ${formatGpuHours(unknown)} GPU-hours used it is not known`;
    notes.push(`${which}: their devices were not asked, or do not tell. They are left out of the share.`);
  }
  if (estimated > 0) {
    const which = `${formatGpuHours(estimated)} GPU-hours of it are estimated`;
    notes.push(`${which}, and that is the most that it can be: their cards tell only for how long any kernel ran.`);
  }
  return notes;
}
