/**
 * What `make` gives for a key, made once for as long as few others are asked for: at most `most` are kept, and the one
 * that was made first goes.
 */
export function remembered<V>(most: number, make: (key: string) => V): (key: string) => V {
  const kept = new Map<string, V>();
  return (key) => {
    const known = kept.get(key);
    if (known !== undefined) return known;
    const made = make(key);
    const [oldest] = kept.keys();
    if (kept.size >= most && oldest !== undefined) kept.delete(oldest);
    kept.set(key, made);
    return made;
  };
}
