import { Search } from "lucide-react";
import { formatCount } from "#components/format.ts";
import { Button } from "#components/ui/button.tsx";
import { ButtonLink } from "#components/ui/button-link.tsx";

/** The page's own address and what its question is, without the place in the list. */
type Place = { path: string; question: Record<string, string>; search: string; label: string };

/** Looks for words in a list that the server pages: an ordinary form, so the address holds the question. */
export function SearchList({ path, question, search, label }: Place) {
  return (
    <search className="mb-2 print:hidden">
      <form action={path} method="get" className="flex flex-wrap items-center gap-2">
        {Object.entries(question).map(([name, value]) => (
          <input key={name} type="hidden" name={name} value={value} />
        ))}
        <label className="relative block w-full sm:w-72">
          <span className="sr-only">{label}</span>
          <Search aria-hidden="true" className="pointer-events-none absolute top-2 left-2.5 size-4 text-ink-2" />
          <input
            type="search"
            name="search"
            key={search}
            defaultValue={search}
            maxLength={100}
            placeholder={label}
            className="h-8 w-full rounded-md border border-line-strong bg-surface pr-2.5 pl-8 placeholder:text-ink-2"
          />
        </label>
        <Button type="submit">Search</Button>
      </form>
    </search>
  );
}

/** How much of a list stands here, and the way to the rest; nothing where all of it does. */
export function Paging({
  path,
  question,
  search,
  label,
  shown,
  total,
  next,
  first,
}: Place & { shown: number; total: number; next: string | null; first: boolean }) {
  if (next === null && first && search === "") return null;
  const address = (change: Record<string, string>) =>
    `${path}?${new URLSearchParams({ ...question, ...(search && { search }), ...change }).toString()}`;
  return (
    <nav aria-label={label} className="mt-2 flex flex-wrap items-center justify-end gap-2">
      <span className="figures mr-auto px-3 text-sm text-ink-2">
        {formatCount(shown)} of {formatCount(total)}
      </span>
      {!first && (
        <ButtonLink href={address({})} className="print:hidden">
          First page
        </ButtonLink>
      )}
      {next !== null && (
        <ButtonLink href={address({ after: next })} className="print:hidden">
          Next page
        </ButtonLink>
      )}
    </nav>
  );
}
