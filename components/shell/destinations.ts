import type { Branch } from "./tree.ts";

/** Somewhere to go: `group` is the heading that it stands under, `words` what it is found by besides its label. */
export type Destination = { href: string; label: string; group: string; words?: string };

/** The pages and teams of a person, and what people begin with. */
export function destinationsOf(tree: Branch[], teams: { name: string }[]): Destination[] {
  return [
    { href: "/workspaces/new", label: "Launch a workspace", group: "Begin", words: "new notebook environment" },
    { href: "/tour", label: "Tour", group: "Begin", words: "first steps example" },
    ...tree.flatMap(({ title, pages }) => pages.map((page) => ({ ...page, group: "Pages", words: title }))),
    { href: "/gpus/works-here", label: "Works here?", group: "Pages", words: "packages conformance GPU types" },
    { href: "/notices", label: "Notices", group: "Pages", words: "bell told unread" },
    { href: "/settings", label: "Settings", group: "Pages", words: "profile tokens sessions time zone" },
    ...teams.map(({ name }) => ({
      href: `/teams/${encodeURIComponent(name)}`,
      label: name,
      group: "Teams",
      words: "team quota",
    })),
  ];
}

/** What the server found for some words, as far as it answers other ones, too, until their own answer comes. */
export function stillFound(answer: { search: string; list: readonly Destination[] }, search: string): Destination[] {
  return answer.search === search ? [...answer.list] : found(answer.list, search);
}

/** Those with each word of a search in their label or words; a label that begins with it first. */
export function found(destinations: readonly Destination[], search: string): Destination[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const rank = ({ label }: Destination) => (label.toLowerCase().startsWith(words[0] ?? "") ? 0 : 1);
  return destinations
    .filter(({ label, words: more = "" }) => words.every((word) => `${label} ${more}`.toLowerCase().includes(word)))
    .sort((a, b) => rank(a) - rank(b));
}
