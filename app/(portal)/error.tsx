"use client";

import { useRouter } from "next/navigation";
import { startTransition } from "react";
import { Button } from "#components/ui/button.tsx";
import { PageHeader } from "#components/ui/page.tsx";

/** When the page could not be read: most often the database is away for a moment. */
export default function PortalError({ error, reset }: { error: Error & { digest?: string }; reset: () => void }) {
  const router = useRouter();
  const again = () =>
    startTransition(() => {
      router.refresh();
      reset();
    });
  return (
    <div role="alert">
      <PageHeader
        title="This page cannot be loaded"
        detail="Leases and notebooks continue. The database may be unavailable for a moment."
      />
      <Button variant="primary" onClick={again}>
        Try again
      </Button>
      {error.digest && (
        <p className="mt-4 text-sm text-ink-2">
          In the portal&rsquo;s log as <code>{error.digest}</code>
        </p>
      )}
    </div>
  );
}
