import { BootSteps } from "#components/setup/boot-steps.tsx";
import { SetupForm } from "#components/setup/setup-form.tsx";
import { Link } from "#components/ui/link.tsx";
import { status } from "#server/services/setup/status.ts";
import { anyContext } from "../../page-context.ts";

export const metadata = { title: "Set up" };

/** The page of the set-up link: one form, and beneath it what is still being built. */
export default async function SetupPage({
  searchParams,
}: {
  searchParams: Promise<Record<string, string | undefined>>;
}) {
  const { code } = await searchParams;
  const setup = await status(await anyContext());
  if (setup.done) {
    return (
      <div>
        <h1 className="text-xl font-semibold tracking-tight">Sluice is set up</h1>
        <p className="mt-1 text-ink-2">
          The first admin exists; this link has done its work.{" "}
          <Link href="/sign-in" className="text-accent underline underline-offset-4">
            Sign in
          </Link>
        </p>
      </div>
    );
  }
  return (
    <>
      <div>
        <h1 className="text-xl font-semibold tracking-tight">Set up Sluice</h1>
        <p className="mt-1 text-ink-2">
          {code
            ? "This makes the first admin, and a team “demo” that may borrow the software GPU."
            : "The set-up link is in the terminal where npm start runs. Open it as it stands there."}
        </p>
      </div>
      {code && <SetupForm code={code} />}
      <BootSteps steps={setup.steps} />
    </>
  );
}
