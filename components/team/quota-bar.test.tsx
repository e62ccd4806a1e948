import { renderToStaticMarkup } from "react-dom/server";
import { expect, it } from "vitest";
import { QuotaBar } from "./quota-bar.tsx";

it("what a team does not use of its guarantee is left to others, and called lent nowhere: nobody need borrow it", () => {
  const quota = { gpuType: "h200", guaranteedMilli: 2000, guaranteedNowMilli: 2000, limitMilli: 4000, usedMilli: 500 };
  const bar = renderToStaticMarkup(<QuotaBar quota={quota} />);
  expect(bar).toMatch(/left to others<\/dt><dd[^>]*>1\.5</);
  expect(bar).not.toContain("lent");
});
