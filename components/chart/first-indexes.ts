/** The index of the first value of each row, from the number of values in each row. */
export function firstIndexes(lengths: readonly number[]): number[] {
  let next = 0;
  return lengths.map((length) => {
    const first = next;
    next += length;
    return first;
  });
}
