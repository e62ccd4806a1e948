import { LiveRefresh } from "#components/live/live.tsx";
import { type Step, Steps } from "#components/ui/steps.tsx";

/** What is still being built on this installation, live; nothing once all of it is done. */
export function BootSteps({ steps }: { steps: Step[] }) {
  if (steps.length === 0) return null;
  const open = steps.filter((step) => step.state !== "done").length;
  if (open === 0) return null;
  const failed = steps.some((step) => step.state === "failed");
  return (
    <section aria-labelledby="boot-title">
      <LiveRefresh topics={["setup"]} />
      <h2 id="boot-title" className="text-lg font-semibold">
        Getting ready
      </h2>
      <p className="mb-2 text-sm text-ink-2">
        {failed
          ? "A step has failed. What to do is written beside it."
          : `${steps.length - open} of ${steps.length} steps are done. You can go on meanwhile.`}
      </p>
      <Steps steps={steps} label="Steps of getting ready" />
    </section>
  );
}
