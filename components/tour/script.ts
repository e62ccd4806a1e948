/** What the tour does, cell by cell. */

export type Notebook = "first" | "second";
export type Cell = {
  key: string;
  notebook: Notebook;
  /** What it shows, for a person. */
  says: string;
  code: string;
  /** The tour goes on while this one waits. */
  waits?: boolean;
};

const MANDELBROT = `import matplotlib.pyplot as plt
import numpy as np
from numba import cuda

@cuda.jit
def mandelbrot(counts, left, top, step, limit):
    column, row = cuda.grid(2)
    if row < counts.shape[0] and column < counts.shape[1]:
        cr, ci, zr, zi, count = left + column * step, top + row * step, 0.0, 0.0, 0
        while count < limit and zr * zr + zi * zi <= 4.0:
            zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
            count += 1
        counts[row, column] = count

counts = cuda.device_array((300, 400), dtype=np.int32)
mandelbrot[(25, 19), (16, 16)](counts, -2.2, -1.2, 3.2 / 400, 150)
plt.figure(figsize=(5, 3.6))
plt.imshow(np.log1p(counts.copy_to_host()), cmap="magma")
plt.axis("off")
plt.show()`;

/** `first` and `second` are amounts: the second is more than what the first leaves. */
export function cells(amounts: Record<Notebook, string>): Cell[] {
  return [
    {
      key: "value",
      notebook: "first",
      says: "A notebook without a GPU computes something.",
      code: "x = 42\nprint('x is', x)",
    },
    {
      key: "attach",
      notebook: "first",
      says: "It borrows a part of a GPU, and the bar fills.",
      code: `%gpu attach ${amounts.first}`,
    },
    {
      key: "draw",
      notebook: "first",
      says: "An ordinary CUDA program runs on it, over the network.",
      code: MANDELBROT,
    },
    {
      key: "queue",
      notebook: "second",
      says: "A second notebook asks for more than is left. It waits, and is told for whom.",
      code: `%gpu attach ${amounts.second}`,
      waits: true,
    },
    {
      key: "detach",
      notebook: "first",
      says: "The first gives its part back, while it lives on. The second is granted at once.",
      code: "%gpu detach",
    },
    { key: "still", notebook: "first", says: "Nothing was lost.", code: "print('x is still', x)" },
    { key: "end", notebook: "second", says: "And the second gives back, too.", code: "%gpu detach" },
  ];
}
