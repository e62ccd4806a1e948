import { useSearchParams } from "next/navigation";
import { useEffect, useRef, useState } from "react";

export type Order = { id: string; down?: boolean };

/** The parameters of a table in the address of its page, which may have several. */
const namesOf = (caption: string) => {
  const table = caption.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  return { filter: `filter-${table}`, sort: `sort-${table}` };
};

/** `gpu` or `gpu-down`, as the address says it. */
const orderIn = (text: string | null, otherwise: Order | undefined): Order | undefined =>
  text === null || text === "" ? otherwise : { id: text.replace(/-down$/, ""), down: text.endsWith("-down") };
const textOf = ({ id, down = false }: Order) => (down ? `${id}-down` : id);

/** The query of an address with what a table is filtered and sorted by; what is as at first is left out. */
export function withQuestion(
  query: string,
  caption: string,
  asked: { word: string; order: Order | undefined; initial: Order | undefined },
): string {
  const parameters = new URLSearchParams(query);
  const { filter, sort } = namesOf(caption);
  const set = (name: string, value: string) => (value === "" ? parameters.delete(name) : parameters.set(name, value));
  const { word, order, initial } = asked;
  set(filter, word.trim());
  set(sort, order === undefined || (initial && textOf(order) === textOf(initial)) ? "" : textOf(order));
  return parameters.toString();
}

/** So long nothing was typed: a browser takes a hundred new addresses in half a minute. */
const STILL_MS = 300;

/** What a table is filtered and sorted by, begun with what the address says and kept there. */
export function useTableQuestion(caption: string, initial: Order | undefined) {
  const parameters = useSearchParams();
  const names = namesOf(caption);
  const [word, setWord] = useState(() => parameters.get(names.filter)?.slice(0, 200) ?? "");
  const [order, setOrder] = useState(() => orderIn(parameters.get(names.sort), initial));
  const touched = useRef(false);
  const first = useRef(initial);
  useEffect(() => {
    if (!touched.current) return;
    const timer = setTimeout(() => {
      const { pathname, search, hash } = window.location;
      const query = withQuestion(search, caption, { word, order, initial: first.current });
      if (query === search.slice(1)) return;
      window.history.replaceState(null, "", `${pathname}${query === "" ? "" : `?${query}`}${hash}`);
    }, STILL_MS);
    return () => clearTimeout(timer);
  }, [caption, word, order]);
  return {
    word,
    order,
    setWord: (next: string) => {
      touched.current = true;
      setWord(next);
    },
    setOrder: (next: Order) => {
      touched.current = true;
      setOrder(next);
    },
  };
}
