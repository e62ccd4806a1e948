import type { Step } from "#components/ui/steps.tsx";
import { stepsOf } from "#components/workspace/event-steps.ts";
import type { ImageVersionEvent, ImageVersionView } from "#server/contracts/image.ts";

const TITLES = {
  lock: "Lock its packages",
  build: "Build it",
  launch: "Launch a workspace with it",
  imports: "Import its modules",
  gpu: "Run a kernel on a GPU",
} as const;

/** The steps of the newest check, those to come among them. */
export function checkSteps(events: ImageVersionEvent[], proposed: NonNullable<ImageVersionView["proposed"]>): Step[] {
  const done = stepsOf(events.filter(({ run }) => run === proposed.checkRun));
  if (proposed.check === "failed") return done;
  const wanted = Object.entries(TITLES).filter(
    ([id]) => proposed.source.kind === "packages" || (id !== "lock" && id !== "build"),
  );
  const coming = wanted.filter(([id]) => done.every((step) => step.id !== id));
  return [...done, ...coming.map(([id, title]) => ({ id, title, state: "waiting" as const }))];
}
