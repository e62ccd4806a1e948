import type { ReactNode } from "react";
import { Mark } from "#components/shell/mark.tsx";

/** The pages before one is signed in: the house's sign, and one thing to do. */
export default function AuthLayout({ children }: { children: ReactNode }) {
  return (
    <div className="mx-auto flex min-h-dvh w-full max-w-[26rem] flex-col px-5 pt-[12vh] pb-10">
      <header className="mb-8">
        <Mark />
      </header>
      <main className="flex flex-col gap-8">{children}</main>
    </div>
  );
}
