import { Mark } from "#components/shell/mark.tsx";

export const metadata = { title: "Nothing here" };

export default function NotFound() {
  return (
    <div className="mx-auto flex min-h-dvh max-w-[26rem] flex-col gap-6 px-5 pt-[12vh]">
      <header>
        <Mark />
      </header>
      <main>
        <h1 className="text-xl font-semibold">Nothing here</h1>
        <p className="mt-1 text-ink-2">There is no page at this address.</p>
        <p className="mt-4">
          {/* eslint-disable-next-line @next/next/no-html-link-for-pages -- every page carries the script of this one */}
          <a href="/" className="text-accent underline underline-offset-4">
            To the first page
          </a>
        </p>
      </main>
    </div>
  );
}
