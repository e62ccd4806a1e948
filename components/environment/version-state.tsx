import { State, type Tone } from "#components/ui/state.tsx";
import type { ImageVersionView } from "#server/contracts/image.ts";

const CHECKS: Record<NonNullable<ImageVersionView["proposed"]>["check"], { tone: Tone; word: string }> = {
  waiting: { tone: "busy", word: "waits for its check" },
  running: { tone: "busy", word: "being checked" },
  passed: { tone: "warn", word: "passed, to be approved" },
  failed: { tone: "bad", word: "failed its check" },
};

/** Where a version stands on its way from a proposal to what everybody launches. */
export function VersionState({ version }: { version: ImageVersionView }) {
  const { offered, state, proposed } = version;
  if (offered) return <State tone="ok">offered</State>;
  if (proposed !== null && (state === "proposed" || state === "testing")) {
    const { tone, word } = CHECKS[proposed.check];
    return <State tone={tone}>{state === "testing" ? "being tested" : word}</State>;
  }
  return <State tone="idle">{state === "approved" ? "replaced" : state}</State>;
}
