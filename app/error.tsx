"use client";

import { useRouter } from "next/navigation";
import { startTransition } from "react";
import { Mark } from "#components/shell/mark.tsx";
import { Button } from "#components/ui/button.tsx";

/** When not even the frame of a page could be read: most often the database is away for a moment. */
export default function RootError({ error, reset }: { error: Error & { digest?: string }; reset: () => void }) {
  const router = useRouter();
  const again = () =>
    startTransition(() => {
      router.refresh();
      reset();
    });
  return (
    <div className="mx-auto flex min-h-dvh max-w-[26rem] flex-col gap-6 px-5 pt-[12vh]">
      <header>
        <Mark />
      </header>
      <main>
        <h1 className="text-xl font-semibold tracking-tight">This page cannot be loaded</h1>
        <p className="mt-1 mb-4 text-ink-2">
          Leases and notebooks continue. The database may be unavailable for a moment.
        </p>
        <Button variant="primary" onClick={again}>
          Try again
        </Button>
        {error.digest && (
          <p className="mt-4 text-sm text-ink-2">
            In the portal&rsquo;s log as <code>{error.digest}</code>
          </p>
        )}
      </main>
    </div>
  );
}
