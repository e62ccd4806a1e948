/** A binary heap: the smallest element is taken first. */
export class Heap<T> {
  readonly #items: T[] = [];
  readonly #compare: (a: T, b: T) => number;

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  push(item: T): void {
    const items = this.#items;
    let at = items.push(item) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#order(parent, at) <= 0) break;
      this.#swap(at, parent);
      at = parent;
    }
  }

  pop(): T | undefined {
    const items = this.#items;
    const [top] = items;
    const last = items.pop();
    if (last === undefined || items.length === 0) return top;
    items[0] = last;
    this.sinkTop();
    return top;
  }

  /** Puts the first element where it belongs after it has changed: cheaper than to take it out and push it again. */
  sinkTop(): void {
    const items = this.#items;
    for (let at = 0; ; ) {
      const left = 2 * at + 1;
      if (left >= items.length) break;
      const child = left + 1 < items.length && this.#order(left + 1, left) < 0 ? left + 1 : left;
      if (this.#order(at, child) <= 0) break;
      this.#swap(at, child);
      at = child;
    }
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  get size(): number {
    return this.#items.length;
  }

  #order(a: number, b: number): number {
    return this.#compare(this.#items[a] as T, this.#items[b] as T);
  }

  #swap(a: number, b: number): void {
    const items = this.#items;
    [items[a], items[b]] = [items[b] as T, items[a] as T];
  }
}
