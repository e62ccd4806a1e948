import { renderToStaticMarkup } from "react-dom/server";
import { expect, it } from "vitest";
import { QuotaBar } from "./quota-bar.tsx";

const h200 = {
  ...{ gpuType: "h200", guaranteedMilli: 2000, guaranteedNowMilli: 2000, limitMilli: 4000 },
  increases: [],
};

it("names the unused guarantee of a team", () => {
  const quota = { ...h200, usedMilli: 500 };
  const bar = renderToStaticMarkup(<QuotaBar quota={quota} />);
  expect(bar).toMatch(/unused guarantee, lent to others<\/dt><dd[^>]*>1\.5</);
});

it("shows an approved increase in the limit, and when it ends", () => {
  const endsAt = new Date(Date.now() + 86_370_000).toISOString();
  const quota = { ...h200, usedMilli: 4500, increases: [{ limitMilli: 1000, endsAt }] };
  const bar = renderToStaticMarkup(<QuotaBar quota={quota} />);
  expect(bar).toContain("h200: 4.5 of 5.0 in use");
  expect(bar).toMatch(/limit<\/dt><dd[^>]*>5\.0</);
  expect(bar).toMatch(/temporary increase<\/dt><dd[^>]*>1\.0, ends <time[^>]*>in 24 h</);
});
