/** What people type as an amount, read in the browser: thousandths of a GPU, or the sentence that says what to type. */
export function readAmount(text: string): { milli: number } | { sentence: string } {
  const trimmed = text.trim();
  if (trimmed === "") return { sentence: "An amount is needed, for example 0.5." };
  if (/^\d+,\d+$/.test(trimmed)) return { sentence: `Use a point: ${trimmed.replace(",", ".")}` };
  if (/^\d+(\.\d+)?\s*[gm](i?b)?$/i.test(trimmed)) {
    return { sentence: "The default is a part of a GPU, for example 0.5. Memory such as 40G is for %gpu attach." };
  }
  if (!/^\d*\.?\d+$/.test(trimmed)) return { sentence: "An amount is a number such as 0.5 or 2." };
  const milli = Math.round(Number(trimmed) * 1000);
  if (milli <= 0) return { sentence: "An amount is more than 0, for example 0.5." };
  if (milli > 1000 && milli % 1000 !== 0) {
    const below = Math.floor(milli / 1000);
    return { sentence: `More than one GPU goes in whole GPUs: use ${below} or ${below + 1}.` };
  }
  return { milli };
}
